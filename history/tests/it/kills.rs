//! A process that is killed between two steps leaves neither gaps nor duplicates.

mod every_step;

use std::{fs, path::PathBuf, time::Duration};

use history::Query;
use types::AppId;

use crate::harness::{Harness, app, counters, dev, everything, files, files_of, segments};

#[tokio::test]
async fn a_segment_that_was_sealed_but_not_deleted_is_not_there_twice() {
    for extension in ["tail", "sealing"] {
        let harness = Harness::new();
        let history = harness.open();
        for counter in 0..5 {
            harness.uplink(&history, "a1", counter).await;
        }
        let segment = segments(&harness).remove(0);
        let bytes = fs::read(&segment).unwrap();
        history.seal().await.unwrap();
        history.close().await.unwrap();
        drop(history);
        fs::write(segment.with_extension(extension), bytes).unwrap();
        let history = harness.open();
        assert_eq!(counters(&history, everything()).await, [4, 3, 2, 1, 0]);
        history.seal().await.unwrap();
        assert_eq!(counters(&history, everything()).await, [4, 3, 2, 1, 0]);
        assert_eq!((files(&harness).len(), segments(&harness).len()), (1, 0));
    }
}

#[tokio::test]
async fn a_segment_of_which_some_files_have_their_names_gets_the_others() {
    let harness = Harness::new();
    let history = harness.open();
    // So many that they are synced together, where the file system has that.
    let applications: Vec<AppId> = (0..40).map(|number| format!("app-{number}").parse().unwrap()).collect();
    for app_id in &applications {
        harness.uplink_of(&history, app_id, "a1", 1).await;
    }
    let segment = segments(&harness).remove(0);
    let bytes = fs::read(&segment).unwrap();
    let named = || applications.iter().map(|app_id| files_of(&harness, app_id).len()).collect::<Vec<_>>();
    // Nothing can be in it.
    let closed = harness.path().join("app=app-7");
    fs::write(&closed, "").unwrap();
    assert!(history.seal().await.is_err());
    assert_eq!(named(), [0; 40]);
    fs::remove_file(closed).unwrap();
    history.seal().await.unwrap();
    assert_eq!(named(), [1; 40]);
    history.close().await.unwrap();
    drop(history);
    let unnamed = applications[20..].iter().flat_map(|app_id| files_of(&harness, app_id));
    unnamed.for_each(|path| fs::remove_file(path).unwrap());
    fs::write(segment.with_extension("sealing"), bytes).unwrap();
    let history = harness.open();
    history.seal().await.unwrap();
    assert_eq!((named(), segments(&harness).len()), (vec![1; 40], 0));
    for app_id in &applications {
        assert_eq!(counters(&history, Query::of(app_id.clone())).await, [1]);
    }
}

#[tokio::test]
async fn a_file_that_has_no_name_yet_is_written_again() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "a1", 1).await;
    history.seal().await.unwrap();
    let file = files(&harness).remove(0);
    let unfinished = file.with_file_name("1-2-0.unfinished");
    fs::write(&unfinished, "PAR1").unwrap();
    assert_eq!(counters(&history, everything()).await, [1]);
    history.maintain().await.unwrap();
    assert!(!unfinished.exists());
    assert_eq!(counters(&history, everything()).await, [1]);
}

/// Leaves five files beside the one that they were merged into, as a kill does; returns that one.
async fn merged_but_not_deleted(harness: &Harness) -> PathBuf {
    let history = harness.open();
    // Too few for anybody to merge them before the day is over.
    for counter in 0..5 {
        harness.uplink(&history, "a1", counter).await;
        history.seal().await.unwrap();
    }
    let before: Vec<_> = files(harness).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    harness.clock.advance(Duration::from_secs(36 * 3600));
    history.maintain().await.unwrap();
    history.close().await.unwrap();
    drop(history);
    let merged = files(harness).remove(0);
    // The list was there before the merged file had its name, and is deleted last.
    let names: Vec<_> = before.iter().map(|(path, _)| path.file_name().unwrap().to_str().unwrap()).collect();
    fs::write(merged.with_extension("replaces"), names.join("\n")).unwrap();
    before.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    assert_eq!(files(harness).len(), 6);
    merged
}

#[tokio::test]
async fn files_that_were_merged_but_not_deleted_are_not_there_twice() {
    let harness = Harness::new();
    let merged = merged_but_not_deleted(&harness).await;
    let history = harness.open();
    assert_eq!(counters(&history, everything()).await, [4, 3, 2, 1, 0]);
    history.maintain().await.unwrap();
    assert_eq!(files(&harness), std::slice::from_ref(&merged));
    assert!(!merged.with_extension("replaces").exists());
    assert_eq!(counters(&history, everything()).await, [4, 3, 2, 1, 0]);
}

#[tokio::test]
async fn files_that_were_merged_but_not_deleted_do_not_outlive_the_new_one() {
    let harness = Harness::new();
    merged_but_not_deleted(&harness).await;
    let history = harness.open();
    history.remove_application(&app()).await.unwrap();
    assert_eq!(files(&harness).len(), 0, "they are removed with it");

    let mut harness = Harness::new();
    merged_but_not_deleted(&harness).await;
    harness.settings.application_bytes_max = Some(1);
    let history = harness.open();
    history.maintain().await.unwrap();
    assert_eq!(files(&harness).len(), 0, "they are too much with it");
}

#[tokio::test]
async fn files_are_not_replaced_by_one_that_never_had_its_name() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "a1", 1).await;
    history.seal().await.unwrap();
    let file = files(&harness).remove(0);
    let list = file.with_file_name("1-2-0m1.replaces");
    fs::write(&list, file.file_name().unwrap().to_str().unwrap()).unwrap();
    assert_eq!(counters(&history, everything()).await, [1]);
    history.maintain().await.unwrap();
    assert!(!list.exists());
    assert_eq!(counters(&history, everything()).await, [1]);
}

#[tokio::test]
async fn what_was_removed_but_is_still_in_files_is_deleted_later() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "a1", 1).await;
    harness.uplink(&history, "b1", 2).await;
    history.seal().await.unwrap();
    let file = files(&harness).remove(0);
    let bytes = fs::read(&file).unwrap();
    history.remove_device(&app(), &dev("a1")).await.unwrap();
    history.close().await.unwrap();
    drop(history);
    let removed = harness.path().join("removed/my-app,a1");
    let pending = removed.with_extension("pending");
    assert!(removed.exists() && !pending.exists());
    // As it was before anything was deleted.
    fs::copy(&removed, &pending).unwrap();
    files(&harness).iter().for_each(|path| fs::remove_file(path).unwrap());
    fs::write(&file, bytes).unwrap();
    let history = harness.open();
    assert_eq!(counters(&history, everything()).await, [2]);
    history.maintain().await.unwrap();
    assert!(!file.exists() && !pending.exists());
    // Nothing is only hidden.
    fs::remove_file(&removed).unwrap();
    assert_eq!(counters(&history, everything()).await, [2]);
}

#[tokio::test]
async fn a_removal_that_was_only_begun_reaches_the_tails_of_others() {
    let harness = Harness::new();
    let (one, other) = (harness.open(), harness.open());
    harness.uplink(&other, "a1", 1).await;
    harness.uplink(&other, "b1", 2).await;
    one.remove_device(&app(), &dev("a1")).await.unwrap();
    let removed = harness.path().join("removed/my-app,a1");
    let pending = removed.with_extension("pending");
    // As it was when it had only begun.
    fs::rename(&removed, &pending).unwrap();
    one.maintain().await.unwrap();
    assert!(!pending.exists());
    other.seal().await.unwrap();
    assert_eq!(counters(&other, everything()).await, [2]);
}
