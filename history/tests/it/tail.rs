//! Acknowledged records survive, and those that cannot be kept are reported and counted.

use std::fs;

use futures::future::join_all;
use history::{Kind, Loss, NewRecord, Query, Settings, StoredHistory};
use types::Clock;

use crate::harness::{Harness, app, counters, dev, everything, page, segments};

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_kill_and_goes_on() {
    let harness = Harness::new();
    // A history that is leaked keeps its lock, as a process does until it is killed.
    let history = harness.open();
    for counter in 0..3 {
        harness.uplink(&history, "a1", counter).await;
    }
    history.close().await.unwrap();
    drop(history);
    for restart in 3..6 {
        let history = harness.open();
        harness.uplink(&history, "a1", restart).await;
        assert_eq!(counters(&history, everything()).await, (0..=restart).rev().collect::<Vec<_>>());
        history.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_block_that_was_written_in_part_is_cut_off_and_the_rest_counts() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "a1", 0).await;
    let whole = fs::metadata(&segments(&harness)[0]).unwrap().len();
    harness.uplink(&history, "a1", 1).await;
    history.close().await.unwrap();
    drop(history);
    let path = segments(&harness)[0].clone();
    let bytes = fs::read(&path).unwrap();
    for length in [bytes.len() - 1, whole as usize + 1, whole as usize] {
        fs::write(&path, &bytes[..length]).unwrap();
        let history = harness.open();
        assert_eq!(counters(&history, everything()).await, [0], "{length} of {} bytes", bytes.len());
        harness.uplink(&history, "a1", 2).await;
        assert_eq!(counters(&history, everything()).await, [2, 0]);
        history.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_changed_block_takes_no_others_with_it_and_foreign_files_stay() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "a1", 0).await;
    let changed = fs::metadata(&segments(&harness)[0]).unwrap().len() as usize + 30;
    for counter in 1..4 {
        harness.uplink(&history, "a1", counter).await;
    }
    history.close().await.unwrap();
    drop(history);
    let path = segments(&harness)[0].clone();
    let mut bytes = fs::read(&path).unwrap();
    bytes[changed] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let foreign = path.with_file_name("foreign.tail");
    fs::write(&foreign, "not ours").unwrap();
    let history = harness.open();
    assert_eq!(counters(&history, everything()).await, [3, 2, 0]);
    // Nothing is written behind what has changed.
    assert!(!path.exists());
    harness.uplink(&history, "a1", 4).await;
    history.seal().await.unwrap();
    assert_eq!(counters(&history, everything()).await, [4, 3, 2, 0]);
    assert_eq!(fs::read_to_string(&foreign).unwrap(), "not ours");
}

#[tokio::test]
async fn a_file_that_is_larger_than_any_of_ours_is_named_and_stays() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "a1", 1).await;
    history.close().await.unwrap();
    drop(history);
    let large = segments(&harness)[0].with_file_name("large.tail");
    fs::copy(&segments(&harness)[0], &large).unwrap();
    // What is behind its only block takes no room on the disk.
    fs::File::options().write(true).open(&large).unwrap().set_len(600 << 20).unwrap();
    let skipped = StoredHistory::open(harness.path()).unwrap().skipped().to_vec();
    let [skipped] = &skipped[..] else { panic!("{skipped:?}") };
    assert!(skipped.path == large && skipped.reason.contains("too large"), "{skipped:?}");
    let history = harness.open();
    harness.uplink(&history, "a1", 2).await;
    history.seal().await.unwrap();
    assert_eq!(counters(&history, everything()).await, [2, 1]);
    assert_eq!(fs::metadata(&large).unwrap().len(), 600 << 20);
}

#[tokio::test]
async fn a_block_that_changes_while_it_runs_does_not_hold_up_sealing() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "a1", 0).await;
    let changed = fs::metadata(&segments(&harness)[0]).unwrap().len() as usize + 30;
    harness.uplink(&history, "a1", 1).await;
    let path = segments(&harness)[0].clone();
    let mut bytes = fs::read(&path).unwrap();
    bytes[changed] ^= 1;
    fs::write(&path, &bytes).unwrap();
    history.seal().await.unwrap();
    assert_eq!(counters(&history, everything()).await, [0]);
}

#[tokio::test]
async fn a_block_that_changes_while_it_runs_is_named_and_hides_no_others() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "a1", 0).await;
    let changed = fs::metadata(&segments(&harness)[0]).unwrap().len() as usize + 30;
    for counter in 1..3 {
        harness.uplink(&history, "a1", counter).await;
    }
    let path = segments(&harness)[0].clone();
    let mut bytes = fs::read(&path).unwrap();
    bytes[changed] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(page(&history, everything()).await, (vec![2, 0], vec![path]));
}

#[tokio::test]
async fn two_processes_write_into_one_directory() {
    let harness = Harness::new();
    let (one, other) = (harness.open(), harness.open());
    harness.uplink(&one, "a1", 1).await;
    harness.uplink(&other, "a1", 2).await;
    assert_eq!(counters(&one, everything()).await, [1]);
    assert_eq!(counters(&other, everything()).await, [2]);
    for history in [&one, &other] {
        history.close().await.unwrap();
    }
    drop((one, other));
    // Whoever comes next finds what both have left.
    assert_eq!(counters(&harness.open(), everything()).await, [2, 1]);
}

#[tokio::test]
async fn many_records_at_once_are_all_kept_in_order() {
    let harness = Harness::new();
    let history = harness.open();
    let (app_id, dev_id) = (app(), dev("a1"));
    let new = |counter| NewRecord { counter, ..NewRecord::new(&app_id, &dev_id, &Kind::Uplink, harness.clock.now()) };
    let pending: Vec<_> = (0..2500).map(|counter| history.append(&new(counter))).collect();
    let kept = join_all(pending).await;
    assert!(kept.iter().all(Result::is_ok));
    assert_eq!(counters(&history, Query { oldest_first: true, ..everything() }).await, (0..2500).collect::<Vec<_>>());
}

#[tokio::test]
async fn ids_do_not_repeat_when_the_clock_is_set_back() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "a1", 1).await;
    harness.clock.set_back(std::time::Duration::from_secs(1));
    harness.uplink(&history, "a1", 2).await;
    let mut found = counters(&history, everything()).await;
    found.sort_unstable();
    assert_eq!(found, [1, 2]);
}

#[tokio::test]
async fn what_is_not_kept_is_said_and_counted() {
    let off = Settings {
        applications: [(app(), serde_json::from_str(r#"{"bytes_max":0}"#).unwrap())].into(),
        ..Settings::default()
    };
    for (settings, payload, loss) in [
        (off, 1, Loss::Off),
        (Settings { bytes_max: 0, ..Settings::default() }, 1, Loss::Off),
        (Settings::default(), 3 << 20, Loss::TooLarge),
    ] {
        let harness = Harness::with(settings);
        let history = harness.open();
        let (app_id, dev_id, payload) = (app(), dev("a1"), vec![0; payload]);
        let plain = NewRecord::new(&app_id, &dev_id, &Kind::Uplink, harness.clock.now());
        let new = NewRecord { payload: &payload, ..plain };
        assert_eq!(history.append(&new).await, Err(loss));
        assert_eq!(history.losses().count(loss), u64::from(loss != Loss::Off));
        history.close().await.unwrap();
        if loss != Loss::Off {
            assert_eq!(history.append(&plain).await, Err(Loss::Closed));
        }
    }
}
