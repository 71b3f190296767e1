//! One story, told on every back end, and what is special about the file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod back_end;
mod file;
mod model;
mod story;

use back_end::BackEnd;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_keeps_to_the_story_and_the_model() {
    tell(Some(BackEnd::file())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_keeps_to_the_story_and_the_model() {
    tell(Some(BackEnd::memory())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_another_process_keeps_to_the_story_and_the_model() {
    tell(Some(BackEnd::shared().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_keeps_to_the_story_and_the_model() {
    tell(BackEnd::redis(false).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_cluster_keeps_to_the_story_and_the_model() {
    tell(BackEnd::redis(true).await).await;
}

/// None is a back end that was skipped, which it has said.
async fn tell(back_end: Option<BackEnd>) {
    let Some(back_end) = back_end else { return };
    story::tell(&back_end).await;
    model::compare(&back_end).await;
}
