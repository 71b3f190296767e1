//! Records that are too old or too many are deleted, oldest first, and none because a clock was wrong for a moment.

use std::{sync::Arc, time::Duration};

use history::{History, Query, Settings};

use crate::harness::{Harness, counters, everything, files, files_of};

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

/// Another harness with a copy of the files.
fn harness_at(harness: &Harness) -> Harness {
    let other = Harness::new();
    for path in files(harness) {
        let target = other.path().join(path.strip_prefix(harness.path()).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(path, target).unwrap();
    }
    other
}
