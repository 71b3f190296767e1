//! Records in Parquet files are found as those in the tail are, and small files become one.

use std::time::Duration;

use futures::future::join_all;
use history::{Kind, NewRecord, Query, Settings};
use types::Clock;

use crate::harness::{Harness, all, app, counters, dev, everything, files, segments};

#[tokio::test]
async fn pages_go_on_from_the_tail_through_files() {
    let harness = Harness::new();
    let history = harness.open();
    for counter in 0..40 {
        harness.uplink(&history, ["a1", "b1", "c1"][counter as usize % 3], counter).await;
        if counter % 12 == 11 {
            history.seal().await.unwrap();
        }
    }
    assert_eq!((files(&harness).len(), segments(&harness).len()), (3, 1));
    let mut shown = Vec::new();
    let mut query = Query { limit: 7, ..everything() };
    loop {
        let page = history.query(query.clone()).await.unwrap();
        assert!(page.records.len() <= 7);
        shown.extend(page.records.iter().map(|record| record.counter));
        query.before = page.next;
        if page.next.is_none() {
            break;
        }
    }
    assert_eq!(shown, (0..40).rev().collect::<Vec<_>>());
    let oldest = Query { oldest_first: true, ..everything() };
    assert_eq!(counters(&history, oldest).await, (0..40).collect::<Vec<_>>());
    let device = Query { dev_id: Some(dev("b1")), ..everything() };
    assert_eq!(counters(&history, device).await, (0..40).rev().filter(|counter| counter % 3 == 1).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_file_of_several_pages_has_every_record_of_every_device() {
    let harness = Harness::new();
    let history = harness.open();
    let app_id = app();
    let devices: Vec<_> = (0..700).map(|number| dev(&format!("dev-{number:03}"))).collect();
    let pending: Vec<_> = (0..7000_u32)
        .map(|counter| {
            let dev_id = &devices[counter as usize % 700];
            let result = format!("{{\"number\":{counter}}}");
            let plain = NewRecord::new(&app_id, dev_id, &Kind::Uplink, harness.clock.now());
            history.append(&NewRecord { counter, result: &result, ..plain })
        })
        .collect();
    join_all(pending).await;
    history.seal().await.unwrap();
    for number in [0, 1, 350, 699] {
        let query = Query { dev_id: Some(devices[number as usize].clone()), ..everything() };
        assert_eq!(counters(&history, query).await, (0..10).rev().map(|row| row * 700 + number).collect::<Vec<_>>());
    }
    let field = Some("fields.number >= 6990".parse().unwrap());
    assert_eq!(counters(&history, Query { field, ..everything() }).await, (6990..7000).rev().collect::<Vec<_>>());
    assert_eq!(all(&history, everything()).await.len(), 7000);
}

#[tokio::test]
async fn segments_are_sealed_when_they_are_full_or_old() {
    for settings in [
        Settings { segment_bytes_max: 1, ..Settings::default() },
        Settings { seal_after_minutes: 5, ..Settings::default() },
    ] {
        let harness = Harness::with(settings);
        let history = harness.open();
        harness.uplink(&history, "a1", 1).await;
        harness.clock.advance(Duration::from_secs(300));
        history.maintain().await.unwrap();
        assert_eq!((files(&harness).len(), segments(&harness).len()), (1, 0));
        assert_eq!(counters(&history, everything()).await, [1]);
    }
}

#[tokio::test]
async fn records_of_two_days_are_in_directories_of_their_days() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "a1", 1).await;
    harness.clock.advance(Duration::from_secs(24 * 3600));
    harness.uplink(&history, "a1", 2).await;
    history.seal().await.unwrap();
    let days: Vec<_> =
        files(&harness).iter().map(|path| path.parent().unwrap().file_name().unwrap().to_owned()).collect();
    assert_eq!(days, ["day=2026-09-21", "day=2026-09-22"]);
    assert_eq!(counters(&history, everything()).await, [2, 1]);
}

#[tokio::test]
async fn small_files_of_a_day_become_one() {
    let harness = Harness::new();
    let history = harness.open();
    let mut sealed = Vec::new();
    for counter in 0..9 {
        harness.uplink(&history, "a1", counter).await;
        history.seal().await.unwrap();
        sealed.extend(files(&harness));
    }
    sealed.sort();
    sealed.dedup();
    assert!(sealed.len() >= 9, "{sealed:?}");
    harness.clock.advance(Duration::from_secs(36 * 3600));
    history.maintain().await.unwrap();
    assert_eq!(files(&harness).len(), 1);
    assert_eq!(counters(&history, everything()).await, (0..9).rev().collect::<Vec<_>>());
}

#[tokio::test]
async fn one_process_sees_what_another_has_sealed() {
    let harness = Harness::new();
    let (one, other) = (harness.open(), harness.open());
    harness.uplink(&one, "a1", 1).await;
    harness.uplink(&other, "a1", 2).await;
    one.seal().await.unwrap();
    assert_eq!(counters(&other, everything()).await, [2, 1]);
    other.seal().await.unwrap();
    assert_eq!(counters(&one, everything()).await, [2, 1]);
}
