//! Several handlers that notice the same silences, at once or one after the other.

use std::{slice, sync::Arc};

use futures::{FutureExt, future::join_all};
use store::{Key, Store, Tag};
use testing::{FailingStore, ManualClock, RecordingStore};
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

use super::{HOUR, Kind, MINUTE, Place};

// Conformance: The same over restarts, jumps of the clock and outages of outputs
#[tokio::test]
async fn of_several_handlers_one_reports_what_none_has_heard() {
    let place = Place::with_time().await;
    let (mut one, mut two) = (place.handler(Kind::AmongOthers).await, place.handler(Kind::AmongOthers).await);
    place.put("heard", "").await;
    two.hear("heard").await;
    two.look().await;
    one.clock.advance(HOUR - MINUTE);
    two.hear("heard").await;
    // They have the same time to say that they have heard a device.
    let mut reported = one.look_after(MINUTE / 2).await;
    reported.extend(two.look().await.into_iter().map(|event| event.dev_id.into()));
    assert!(reported.is_empty());
    for _ in 0..3 {
        reported.extend(one.look_after(MINUTE).await);
        reported.extend(two.look().await.into_iter().map(|event| event.dev_id.into()));
    }
    assert_eq!(reported, ["dev"]);
}

// Conformance: The same over restarts, jumps of the clock and outages of outputs
#[tokio::test]
async fn what_another_handler_has_just_reported_is_not_reported_again() {
    let clock = ManualClock::new();
    let store = Arc::new(RecordingStore::new(clock.for_store()));
    let place = Place::over(store.clone(), clock).await;
    place.set("1h").await;
    let (mut one, mut two) = (place.handler(Kind::AmongOthers).await, place.handler(Kind::AmongOthers).await);
    place.clock.advance(HOUR + MINUTE);
    let others = store.clone();
    let report = async move {
        assert_eq!(one.look().await.len(), 1);
        let claim = Key::new(&Tag::application("my-app").unwrap(), "handler/working/silence").unwrap();
        while others.get(slice::from_ref(&claim)).await.unwrap()[0].is_some() {
            yield_now().await;
        }
    };
    // After the second read: the first one is that of the application.
    let later = store.clone();
    store.interrupt(async move { later.interrupt(report.boxed()) }.boxed());
    assert!(two.look().await.is_empty());
    assert!(two.look_after(MINUTE).await.is_empty(), "nobody has reported it");
}

// Conformance: The same over restarts, jumps of the clock and outages of outputs
#[tokio::test]
async fn a_device_is_not_silent_because_another_handler_has_set_a_shorter_time() {
    let place = Place::with_time().await;
    let (mut one, mut two) = (place.handler(Kind::AmongOthers).await, place.handler(Kind::AmongOthers).await);
    place.put("heard", "").await;
    two.hear("heard").await;
    assert!(two.look().await.is_empty());
    place.clock.advance(MINUTE);
    place.put("heard", "5m").await;
    one.hear("heard").await;
    assert!(one.look().await.is_empty());
    // From now on, only the other one hears it, which would not look for long.
    for pause in [MINUTE, 3 * MINUTE] {
        place.clock.advance(pause);
        two.hear("heard").await;
        assert!(two.look().await.is_empty());
    }
    assert!(two.look_after(MINUTE).await.is_empty());
    assert!(one.look_after(MINUTE).await.is_empty(), "the other one has heard it");
    assert!(one.look_after(3 * MINUTE).await.is_empty());
    assert_eq!(one.look_after(MINUTE).await, ["heard"]);
}

// Conformance: The same over restarts, jumps of the clock and outages of outputs
#[tokio::test]
async fn after_an_outage_of_the_store_each_can_say_what_it_has_heard() {
    let clock = ManualClock::new();
    let store = Arc::new(FailingStore::new(clock.for_store()));
    let place = Place::over(store.clone(), clock).await;
    place.set("1h").await;
    let (mut one, mut two) = (place.handler(Kind::AmongOthers).await, place.handler(Kind::AmongOthers).await);
    two.hear("dev").await;
    two.look().await;
    place.clock.advance(HOUR - MINUTE);
    two.hear("dev").await;
    store.fail_after(0);
    place.clock.advance(10 * MINUTE);
    for handler in [&mut one, &mut two] {
        assert!(handler.watch.pass(&CancellationToken::new()).await.is_err());
    }
    store.recover();
    assert!(one.look().await.is_empty(), "the other one has heard it");
    assert!(two.look().await.is_empty());
    assert!(one.look_after(MINUTE).await.is_empty());
    assert_eq!(one.look_after(HOUR).await, ["dev"]);
}

// Conformance: The same over restarts, jumps of the clock and outages of outputs
#[tokio::test]
async fn history_that_does_not_go_back_says_nothing() {
    let place = Place::with_time().await;
    let mut first = place.handler(Kind::WithoutHistory).await;
    first.hear("dev").await;
    assert!(first.look().await.is_empty());
    assert!(first.look_after(HOUR - 2 * MINUTE).await.is_empty());
    first.hear("dev").await;
    drop(first);
    let mut second = place.handler(Kind::Alone).await;
    assert!(second.look_after(HOUR - 2 * MINUTE).await.is_empty(), "it was heard, and history was off");
    assert_eq!(second.look_after(MINUTE).await, ["dev"]);
}

// Conformance: The same over restarts, jumps of the clock and outages of outputs
#[tokio::test]
async fn devices_are_found_in_history_with_and_without_many_uplinks_of_others() {
    let quiet = ["dev", "dev-1", "dev-2", "dev-3", "dev-4", "dev-5"];
    // With more than are read at once.
    for others in [0, 16] {
        let place = Place::with_time().await;
        let first = place.handler(Kind::Alone).await;
        place.put("busy", "off").await;
        for dev_id in &quiet[1..] {
            place.put(dev_id, "").await;
        }
        first.clock.advance(MINUTE);
        for dev_id in quiet {
            first.hear(dev_id).await;
        }
        for _ in 0..others {
            join_all((0..64).map(|_| first.hear("busy"))).await;
        }
        drop(first);
        let mut second = place.handler(Kind::Alone).await;
        assert!(second.look_after(HOUR - 2 * MINUTE).await.is_empty(), "{others}");
        assert_eq!(second.look_after(MINUTE).await, quiet, "{others}");
    }
}
