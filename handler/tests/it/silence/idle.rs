//! Applications in which nothing happens, and what is noticed there nevertheless.

use std::{sync::Arc, time::Duration};

use testing::{ManualClock, RecordingStore};

use super::{Kind, MINUTE, Place, app};
use crate::records::{device, id};

const INTERVAL: Duration = Duration::from_secs(15);

// Conformance: The same over restarts, jumps of the clock and outages of outputs
#[tokio::test]
async fn nothing_is_read_of_applications_in_which_nothing_happens() {
    let clock = ManualClock::new();
    let store = Arc::new(RecordingStore::new(clock.for_store()));
    let place = Place::over(store.clone(), clock).await;
    for app_id in [app(), id("your-app"), id("empty-app")] {
        if app_id != app() {
            place.applications.register(&app_id).await.unwrap();
        }
        place.applications.set_silent_after(&app_id, Some("1h".parse().unwrap())).await.unwrap();
    }
    place.devices.set(device("your-app")).await.unwrap();
    let mut handler = place.handler(Kind::Alone).await;
    // Their alarms were set with the first look, which the second one sees.
    assert!(handler.look_after(INTERVAL).await.is_empty());
    store.take_reads();
    for _ in 0..20 {
        assert!(handler.look_after(INTERVAL).await.is_empty());
        assert_eq!(store.take_reads(), Vec::<String>::new());
    }
    handler.hear("dev").await;
    store.take_reads();
    handler.look().await;
    let reads = store.take_reads();
    assert!(!reads.is_empty() && reads.iter().any(|paths| paths.contains("alarm/dev")), "{reads:?}");
}

// Conformance: The same over restarts, jumps of the clock and outages of outputs
#[tokio::test]
async fn a_shorter_time_that_another_handler_has_set_is_noticed_at_once() {
    let place = Place::with_time().await;
    let mut handler = place.handler(Kind::Alone).await;
    assert!(handler.look_after(INTERVAL).await.is_empty());
    place.set("5m").await;
    assert!(handler.look_after(INTERVAL).await.is_empty());
    assert!(handler.look_after(4 * MINUTE).await.is_empty());
    assert_eq!(handler.look_after(MINUTE).await, ["dev"]);
}

// Conformance: The same over restarts, jumps of the clock and outages of outputs
#[tokio::test]
async fn an_alarm_that_a_handler_has_left_is_found_by_another_one() {
    let place = Place::with_time().await;
    let mut handler = place.handler(Kind::Alone).await;
    assert!(handler.look_after(INTERVAL).await.is_empty());
    // By a process that does not look any more.
    place.put("left", "1m").await;
    assert_eq!(handler.look_after(10 * MINUTE).await, ["left"]);
    assert!(handler.look_after(MINUTE).await.is_empty());
}

// Conformance: The same over restarts, jumps of the clock and outages of outputs
#[tokio::test]
async fn a_shorter_time_of_a_device_outlives_the_handler_that_has_set_it() {
    let place = Place::with_time().await;
    place.put("left", "").await;
    let mut first = place.handler(Kind::Alone).await;
    assert!(first.look_after(INTERVAL).await.is_empty());
    // It is killed before it looks.
    place.put("left", "5m").await;
    drop(first);
    let mut second = place.handler(Kind::WithoutHistory).await;
    assert_eq!(second.look_after(5 * MINUTE).await, ["left"]);
}
