//! Records of a deleted application or device are deleted, wherever they are.

use std::time::Duration;

use history::Query;
use types::Clock;

use crate::harness::{Harness, app, counters, dev, everything, files, segments};

#[tokio::test]
async fn records_of_a_device_are_deleted_and_others_stay() {
    let harness = Harness::new();
    let history = harness.open();
    for counter in 0..6 {
        harness.uplink(&history, ["a1", "b1"][counter as usize % 2], counter).await;
        if counter == 3 {
            history.seal().await.unwrap();
        }
    }
    history.remove_device(&app(), &dev("a1")).await.unwrap();
    assert_eq!(counters(&history, everything()).await, [5, 3, 1]);
    // A device that gets the same id again is another one.
    harness.uplink(&history, "a1", 6).await;
    assert_eq!(counters(&history, everything()).await, [6, 5, 3, 1]);
    history.seal().await.unwrap();
    let device = Query { dev_id: Some(dev("a1")), ..everything() };
    assert_eq!(counters(&history, device).await, [6]);
    let bytes: Vec<_> = files(&harness).into_iter().flat_map(|path| std::fs::read(path).unwrap()).collect();
    assert!(!bytes.windows(20).any(|bytes| bytes == br#"{"level":2,"name":"a"#), "the result is still on disk");
}

#[tokio::test]
async fn a_late_deletion_spares_the_device_that_has_the_id_by_now() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "b1", 1).await;
    harness.uplink(&history, "a1", 2).await;
    let deleted = harness.clock.now();
    harness.uplink(&history, "a1", 3).await;
    // The second one has nothing to do.
    for _ in 0..2 {
        history.remove_device_until(&app(), &dev("a1"), deleted).await.unwrap();
        assert_eq!(counters(&history, everything()).await, [3, 1]);
        history.seal().await.unwrap();
    }
    assert_eq!(counters(&history, everything()).await, [3, 1]);
    // What was deleted later covers what was deleted earlier, and stays so.
    history.remove_device(&app(), &dev("a1")).await.unwrap();
    history.remove_device_until(&app(), &dev("a1"), deleted).await.unwrap();
    assert_eq!(counters(&history, everything()).await, [1]);
}

#[tokio::test]
async fn records_of_an_application_are_deleted() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "a1", 1).await;
    history.seal().await.unwrap();
    harness.uplink(&history, "a1", 2).await;
    history.remove_application(&app()).await.unwrap();
    assert_eq!(counters(&history, everything()).await, [0; 0]);
    assert_eq!((files(&harness).len(), segments(&harness).len()), (0, 0));
}

#[tokio::test]
async fn what_another_process_has_in_its_tail_is_deleted_when_it_is_sealed() {
    let harness = Harness::new();
    let (one, other) = (harness.open(), harness.open());
    harness.uplink(&other, "a1", 1).await;
    harness.uplink(&other, "b1", 2).await;
    one.remove_device(&app(), &dev("a1")).await.unwrap();
    assert_eq!(counters(&other, everything()).await, [2]);
    other.seal().await.unwrap();
    assert_eq!(counters(&one, everything()).await, [2]);
}

#[tokio::test]
async fn records_of_a_clock_that_was_ahead_are_deleted_too() {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    for is_sealed in [true, false] {
        let harness = Harness::new();
        let history = harness.open();
        harness.uplink(&history, "a1", 1).await;
        harness.clock.jump(YEAR);
        harness.uplink(&history, "a1", 2).await;
        harness.uplink(&history, "b1", 3).await;
        if is_sealed {
            history.seal().await.unwrap();
        }
        harness.clock.set_back(YEAR);
        history.remove_device(&app(), &dev("a1")).await.unwrap();
        assert_eq!(counters(&history, everything()).await, [3]);
        // Another device with this id does not wait for a year.
        harness.uplink(&history, "a1", 4).await;
        history.seal().await.unwrap();
        assert_eq!(counters(&history, everything()).await, [3, 4]);
        history.remove_application(&app()).await.unwrap();
        assert_eq!((counters(&history, everything()).await, files(&harness).len()), (vec![], 0));
    }
}
