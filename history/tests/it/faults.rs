//! Full disks, large messages, fields that change their type, and files that move while they are read.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use history::{Environment, History, Kind, Loss, NewRecord, Query, Settings};
use testing::{CountingRandom, ManualClock, SmallDisk};
use types::Clock;

use crate::harness::{Harness, all, app, counters, dev, everything, files, kept, page, segments};

#[tokio::test]
async fn a_full_disk_loses_what_it_says_and_nothing_else() {
    let Some(disk) = SmallDisk::mount() else { return };
    let clock = ManualClock::new();
    let settings = Settings { wait_ms_max: 60_000, ..Settings::default() };
    let environment = Environment {
        clock: clock.clone(),
        random: &CountingRandom::default(),
        owner_of: Arc::new(ToString::to_string),
    };
    let history = History::open(disk.path(), settings, environment).unwrap();
    let (app_id, dev_id) = (app(), dev("a1"));
    // Nothing that becomes short when it is compressed.
    let numbers = std::iter::successors(Some(1_u32), |number| Some(number.wrapping_mul(1_664_525).wrapping_add(1)));
    let payload: Vec<u8> = numbers.map(|number| (number >> 24) as u8).take(5000).collect();
    let append = async |counter| {
        let plain = NewRecord::new(&app_id, &dev_id, &Kind::Uplink, clock.now());
        history.append(&NewRecord { counter, payload: &payload, ..plain }).await
    };
    kept(append(1).await);
    disk.fill();
    assert_eq!(append(2).await, Err(Loss::Full));
    assert_eq!(history.losses().count(Loss::Full), 1);
    assert!(history.seal().await.is_err());
    assert_eq!(counters(&history, everything()).await, [1]);
    disk.empty();
    kept(append(3).await);
    history.seal().await.unwrap();
    assert_eq!(counters(&history, everything()).await, [3, 1]);
}

#[tokio::test]
async fn large_results_with_many_fields_are_kept_and_searched() {
    let harness = Harness::new();
    let history = harness.open();
    let (app_id, dev_id) = (app(), dev("a1"));
    let fields: Vec<_> = (0..10_000).map(|number| format!("\"field_{number}\":\"{number:08}\"")).collect();
    let result = format!("{{{}}}", fields.join(","));
    assert!(result.len() > 200_000);
    for counter in 0..200 {
        let plain = NewRecord::new(&app_id, &dev_id, &Kind::Uplink, harness.clock.now());
        kept(history.append(&NewRecord { counter, result: &result, ..plain }).await);
    }
    let field = Some("fields.field_9999 = \"00009999\"".parse().unwrap());
    let before =
        Some(kept(history.append(&NewRecord::new(&app_id, &dev_id, &Kind::Uplink, harness.clock.now())).await));
    let wanted = Query { field, before, oldest_first: true, limit: 1, ..everything() };
    for _ in 0..2 {
        let page = history.query(Query { limit: 1000, ..everything() }).await.unwrap();
        assert!(page.next.is_some(), "a page is bounded in bytes, too");
        assert_eq!(all(&history, everything()).await.len(), 201);
        assert_eq!(history.query(wanted.clone()).await.unwrap().records.len(), 1);
        history.seal().await.unwrap();
    }
}

#[tokio::test]
async fn a_field_that_becomes_a_text_is_found_as_what_it_is() {
    let harness = Harness::new();
    let history = harness.open();
    let (app_id, dev_id) = (app(), dev("a1"));
    let results = [r#"{"t":31}"#, r#"{"t":"31"}"#, r#"{"t":{"t":31}}"#, "", r#"{"t":null}"#, r#"{"u":"\"t\":31"}"#];
    for (counter, result) in results.iter().enumerate() {
        let plain = NewRecord::new(&app_id, &dev_id, &Kind::Uplink, harness.clock.now());
        kept(history.append(&NewRecord { counter: counter as u32, result, ..plain }).await);
    }
    for _ in 0..2 {
        for (filter, expected) in
            [("fields.t > 30", vec![0]), ("fields.t = \"31\"", vec![1]), ("fields.t.t = 31", vec![2])]
        {
            let query = Query { field: Some(filter.parse().unwrap()), ..everything() };
            assert_eq!(counters(&history, query).await, expected, "{filter}");
        }
        history.seal().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_sees_every_record_once_while_files_move() {
    let harness = Harness::new();
    let history = harness.open();
    for counter in 0..10 {
        harness.uplink(&history, "a1", counter).await;
    }
    let reading = {
        let history = Arc::clone(&history);
        tokio::spawn(async move {
            for _ in 0..100 {
                let found = counters(&history, Query { limit: 1000, ..everything() }).await;
                let newest = found.first().copied().unwrap_or(0);
                assert_eq!(found, (0..=newest).rev().collect::<Vec<_>>());
            }
        })
    };
    for counter in 10..60 {
        harness.uplink(&history, "a1", counter).await;
        if counter % 3 == 0 {
            history.seal().await.unwrap();
        }
        if counter % 20 == 0 {
            history.maintain().await.unwrap();
        }
    }
    reading.await.unwrap();
    assert!(files(&harness).len() < 12, "some files were merged");
}

#[tokio::test]
async fn a_clock_that_jumps_loses_nothing() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "a1", 1).await;
    harness.clock.jump(Duration::from_secs(100 * 365 * 24 * 3600));
    harness.uplink(&history, "a1", 2).await;
    history.seal().await.unwrap();
    history.maintain().await.unwrap();
    harness.clock.set_back(Duration::from_secs(150 * 365 * 24 * 3600));
    harness.uplink(&history, "a1", 3).await;
    history.seal().await.unwrap();
    history.maintain().await.unwrap();
    assert_eq!(counters(&history, everything()).await, [2, 1, 3]);
}

/// A file beside another which leads to itself: nobody can open it, not even an administrator.
fn closed_beside(file: &Path) -> PathBuf {
    let closed = file.with_file_name("1790000000000-1790000009000-0.parquet");
    symlink(&closed, &closed).unwrap();
    closed
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_is_named_and_holds_up_nothing() {
    let harness = Harness::new();
    let history = harness.open();
    for counter in 0..3 {
        harness.uplink(&history, "a1", counter).await;
        history.seal().await.unwrap();
    }
    let closed = closed_beside(&files(&harness)[0]);
    assert_eq!(page(&history, everything()).await, (vec![2, 1, 0], vec![closed.clone()]));
    harness.clock.advance(Duration::from_secs(36 * 3600));
    history.maintain().await.unwrap();
    assert_eq!(files(&harness).len(), 2, "the others were merged");
    assert_eq!(page(&history, everything()).await, (vec![2, 1, 0], vec![closed.clone()]));

    // It may have the device, so the removal is not done.
    assert!(history.remove_device(&app(), &dev("a1")).await.is_err());
    assert_eq!(files(&harness), std::slice::from_ref(&closed));
    assert!(history.maintain().await.is_err());
    fs::remove_file(&closed).unwrap();
    history.maintain().await.unwrap();
    assert!(!harness.path().join("removed/my-app,a1.pending").exists());
}

#[tokio::test]
async fn a_removal_that_fails_again_and_again_seals_no_later_records() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "a1", 0).await;
    history.seal().await.unwrap();
    let closed = closed_beside(&files(&harness)[0]);
    // Nothing in it can be ahead of the clock.
    harness.clock.advance(Duration::from_secs(60));
    assert!(history.remove_device(&app(), &dev("a1")).await.is_err());
    harness.uplink(&history, "b1", 1).await;
    for _ in 0..2 {
        assert!(history.maintain().await.is_err());
        assert_eq!((files(&harness), segments(&harness).len()), (vec![closed.clone()], 1));
    }
    assert_eq!(page(&history, everything()).await, (vec![1], vec![closed]));
}

#[tokio::test]
async fn an_application_that_fails_does_not_hold_up_the_others() {
    let harness = Harness::new();
    let history = harness.open();
    for counter in 0..3 {
        harness.uplink(&history, "a1", counter).await;
        history.seal().await.unwrap();
    }
    let first = harness.path().join("app=a-first-app");
    fs::create_dir(&first).unwrap();
    fs::write(first.join("day=2026-09-21"), "not a directory").unwrap();
    harness.clock.advance(Duration::from_secs(36 * 3600));
    assert!(history.maintain().await.is_err());
    assert_eq!(files(&harness).len(), 1);
    assert_eq!(counters(&history, everything()).await, [2, 1, 0]);
}

#[tokio::test]
async fn a_day_that_cannot_be_listed_does_not_hold_up_the_others() {
    let mut harness = Harness::new();
    let history = harness.open();
    for device in ["a1", "b1"] {
        harness.uplink(&history, device, 0).await;
        history.seal().await.unwrap();
    }
    let [removed, too_much] = files(&harness).try_into().unwrap();
    let first = harness.path().join("app=my-app/day=2026-09-20");
    fs::write(&first, "not a directory").unwrap();
    assert!(history.remove_device(&app(), &dev("a1")).await.is_err());
    assert!(!removed.exists() && too_much.exists());
    let page = history.query(everything()).await.unwrap();
    assert_eq!((page.records.len(), page.skipped.len()), (1, 1), "{:?}", page.skipped);
    history.close().await.unwrap();
    drop(history);

    harness.settings.application_bytes_max = Some(1);
    let history = harness.open();
    assert!(history.maintain().await.is_err());
    assert!(!too_much.exists());
    fs::remove_file(first).unwrap();
    history.maintain().await.unwrap();
    assert!(!harness.path().join("removed/my-app,a1.pending").exists());
}
