//! The store's contract, checked on every back end, and what only the file does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod backend;
mod contract;
mod failover;
mod file;
mod full_disk;
mod jumps;
mod large;
mod model;
mod threads;
mod usage;

use backend::Backend;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_keeps_the_contract() {
    check(Some(Backend::file())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_keeps_the_contract() {
    check(Some(Backend::memory())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_keeps_the_contract() {
    check(Some(Backend::socket().await)).await;
}

// Conformance: A clock that is set back blocks a rate limit only for the time of one call
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_keeps_the_contract() {
    check(Backend::redis().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_cluster_of_three_nodes_keeps_the_contract() {
    check(Backend::cluster().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_behind_sentinels_keeps_the_contract() {
    check(Backend::sentinels().await).await;
}

/// Does nothing for a back end that is skipped.
async fn check(backend: Option<Backend>) {
    let Some(backend) = backend else { return };
    contract::check(&backend).await;
    model::check(&backend).await;
    usage::check(&backend).await;
}
