//! Several handlers that notice the same silences.

use std::{slice, sync::Arc};

use futures::FutureExt;
use store::{Key, Store, Tag};
use testing::{ManualClock, RecordingStore};
use tokio::task::yield_now;

use super::{HOUR, Kind, MINUTE, Place};

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
