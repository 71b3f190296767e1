//! Records that are too old or too many are deleted, oldest first, and none because a clock was wrong for a moment.

use std::{
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use history::{ApplicationSettings, History, Query, Settings};

use crate::harness::{Harness, app, counters, everything, files, files_of};

/// Lets the clock run evenly while the history looks at it.
async fn minutes(harness: &Harness, history: &Arc<History>, minutes: u32) {
    for _ in 0..minutes {
        harness.clock.advance(Duration::from_secs(60));
        history.maintain().await.unwrap();
    }
}

#[tokio::test]
async fn records_are_deleted_after_their_days_once_the_clock_can_be_believed() {
    let harness = Harness::with(Settings { days_max: 2, ..Settings::default() });
    let history = harness.open();
    minutes(&harness, &history, 12).await;
    harness.uplink(&history, "a1", 1).await;
    history.seal().await.unwrap();
    harness.clock.jump(Duration::from_secs(72 * 3600));
    minutes(&harness, &history, 5).await;
    assert_eq!(counters(&history, everything()).await, [1]);
    minutes(&harness, &history, 70).await;
    assert_eq!(counters(&history, everything()).await, [0; 0]);
    assert!(!harness.path().join("app=my-app").exists());
}

#[tokio::test]
async fn the_oldest_goes_when_an_application_has_too_much() {
    let harness = Harness::new();
    let history = harness.open();
    for counter in 0..4 {
        harness.uplink(&history, "a1", counter).await;
        history.seal().await.unwrap();
    }
    let bytes: u64 = files(&harness).iter().map(|path| path.metadata().unwrap().len()).sum();
    history.close().await.unwrap();
    drop(history);
    for settings in [
        Settings { application_bytes_max: Some(bytes * 5 / 8), ..Settings::default() },
        Settings { bytes_max: bytes * 3 / 8, application_bytes_max: Some(bytes), ..Settings::default() },
    ] {
        let harness = Harness { settings: Settings { wait_ms_max: 60_000, ..settings }, ..harness_at(&harness) };
        let history = harness.open();
        history.maintain().await.unwrap();
        let kept = counters(&history, everything()).await;
        assert!([vec![3, 2], vec![3]].contains(&kept), "{kept:?}");
        history.close().await.unwrap();
    }
}

#[tokio::test]
async fn who_has_many_applications_takes_nothing_from_who_has_one() {
    let harness = Harness::new();
    let history = harness.open();
    // What Ben has is the oldest.
    let applications = ["ben-1", "ann-1", "ann-2", "ann-3", "ann-4", "ann-5"].map(|id| id.parse().unwrap());
    for app_id in &applications {
        harness.uplink_of(&history, app_id, "a1", 1).await;
        history.seal().await.unwrap();
    }
    history.close().await.unwrap();
    drop(history);
    let all = applications.iter().flat_map(|app_id| files_of(&harness, app_id));
    let bytes: u64 = all.map(|path| path.metadata().unwrap().len()).sum();
    let settings = Settings { bytes_max: bytes / 2, application_bytes_max: Some(bytes), ..harness.settings.clone() };
    let harness = Harness { settings, ..harness };
    let history = harness.open();
    history.maintain().await.unwrap();
    let mut kept = Vec::new();
    for app_id in &applications {
        kept.push(history.query(Query::of(app_id.clone())).await.unwrap().records.len());
    }
    assert_eq!(kept, [1, 0, 0, 0, 1, 1]);
}

/// A file of a tail that was kept aside, as if it had been written now.
fn kept_aside(harness: &Harness, name: &str, bytes: u64) -> PathBuf {
    let dir = harness.path().join("tail/left");
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name).with_extension("damaged");
    let file = fs::File::create(&path).unwrap();
    file.set_len(bytes).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_millis(harness.clock.millis())).unwrap();
    path
}

#[tokio::test]
async fn a_damaged_file_is_deleted_once_it_is_too_old_for_any_application() {
    let longer = ApplicationSettings { days_max: Some(3), ..ApplicationSettings::default() };
    let applications = [(app(), longer)].into();
    let harness = Harness::with(Settings { days_max: 2, applications, ..Settings::default() });
    let history = harness.open();
    minutes(&harness, &history, 12).await;
    let path = kept_aside(&harness, "0000", 7);
    harness.clock.jump(Duration::from_secs(60 * 3600));
    minutes(&harness, &history, 70).await;
    assert!(path.exists(), "it may have records of an application that keeps them longer");
    harness.clock.jump(Duration::from_secs(24 * 3600));
    minutes(&harness, &history, 5).await;
    assert!(path.exists(), "the clock cannot be believed yet");
    minutes(&harness, &history, 70).await;
    assert!(!path.exists());
}

#[tokio::test]
async fn damaged_files_count_and_go_before_what_can_be_read() {
    let harness =
        Harness::with(Settings { bytes_max: 1_000_000, application_bytes_max: Some(1_000_000), ..Settings::default() });
    let history = harness.open();
    harness.uplink(&history, "a1", 1).await;
    history.seal().await.unwrap();
    let mut paths = Vec::new();
    // The names are not in the order of their times.
    for (name, bytes) in [("b", 600_000), ("c", 300_000), ("a", 500_000)] {
        harness.clock.advance(Duration::from_secs(1));
        paths.push(kept_aside(&harness, name, bytes));
    }
    history.maintain().await.unwrap();
    assert_eq!(paths.iter().map(|path| path.exists()).collect::<Vec<_>>(), [false, true, true]);
    paths.push(kept_aside(&harness, "d", 1_000_000));
    history.maintain().await.unwrap();
    assert!(!paths.iter().any(|path| path.exists()), "with the uplink, the last one is too large as well");
    assert_eq!(counters(&history, everything()).await, [1]);
}

/// Another harness with a copy of the files.
fn harness_at(harness: &Harness) -> Harness {
    let other = Harness::new();
    for path in files(harness) {
        let target = other.path().join(path.strip_prefix(harness.path()).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(path, target).unwrap();
    }
    other
}
