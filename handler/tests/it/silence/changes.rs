//! Applications and devices that change while their silence is noticed.

use std::sync::Arc;

use futures::FutureExt;
use handler::{
    application::{Application, JoinKeyChange},
    device::Move,
    downlink::Outgoing,
    network::{NetworkEvents, Registration},
};
use testing::{ManualClock, RecordingStore};
use types::{DeviceIds, DevicePath, NetworkDevice, NetworkEvent, NetworkJoin};

use super::{HOUR, Kind, MINUTE, Place, app, dev};
use crate::records::{device, id};

#[tokio::test]
async fn a_look_while_the_time_is_set_does_not_undo_it() {
    let clock = ManualClock::new();
    let store = Arc::new(RecordingStore::new(clock.for_store()));
    let place = Place::over(store.clone(), clock).await;
    let (mut handler, mut other) = (place.handler(Kind::Alone).await, place.start(Kind::Alone).await);
    // The application is named by then, and has no time yet.
    store.interrupt_commit(async move { assert!(other.look().await.is_empty()) }.boxed());
    place.set("1h").await;
    assert!(handler.look().await.is_empty());
    assert_eq!(handler.look_after(HOUR).await, ["dev"]);
}

#[tokio::test]
async fn a_time_that_is_set_while_alarms_are_deleted_counts() {
    let clock = ManualClock::new();
    let store = Arc::new(RecordingStore::new(clock.for_store()));
    let place = Place::over(store.clone(), clock).await;
    place.set("1h").await;
    let mut handler = place.handler(Kind::Alone).await;
    place.applications.set_silent_after(&app(), None).await.unwrap();
    let applications = place.applications.clone();
    let again = async move { applications.set_silent_after(&app(), Some("1h".parse().unwrap())).await.unwrap() };
    store.interrupt_commit(again.boxed());
    assert!(handler.look().await.is_empty() && handler.look().await.is_empty());
    assert_eq!(handler.look_after(HOUR).await, ["dev"]);
}

// Conformance: An event when a device has sent nothing for a time, once for each silence
#[tokio::test]
async fn a_device_that_moves_begins_anew_where_it_comes() {
    let place = Place::with_time().await;
    let there = id("other-app");
    place.applications.register(&there).await.unwrap();
    place.applications.set_silent_after(&there, Some("2h".parse().unwrap())).await.unwrap();
    let mut handler = place.handler(Kind::Alone).await;
    assert_eq!(handler.look_after(HOUR).await, ["dev"]);
    place.devices.move_device(&Move { from: (app(), dev("dev")), to: (there, dev("dev")) }).await.unwrap();
    assert!(!place.has_alarms().await);
    assert!(handler.look_after(HOUR * 2 - MINUTE).await.is_empty());
    assert_eq!(handler.look_after(MINUTE).await, ["dev"]);
    assert!(handler.look_after(HOUR * 2).await.is_empty());
}

#[tokio::test]
async fn a_device_that_is_back_at_once_is_reported_once() {
    let place = Place::with_time().await;
    let mut handler = place.handler(Kind::Alone).await;
    place.devices.delete(DevicePath { app_id: &app(), dev_id: &dev("dev") }).await.unwrap();
    place.clock.advance(MINUTE);
    place.put("dev", "").await;
    // The same look finds its new alarm, and what is left of the one before.
    assert_eq!(handler.look_after(HOUR).await, ["dev"]);
    assert!(handler.look_after(MINUTE).await.is_empty());
}

// Conformance: An event when a device has sent nothing for a time, once for each silence
#[tokio::test]
async fn a_silence_ends_with_a_join() {
    let place = Place::with_time().await;
    let mut handler = place.handler(Kind::Alone).await;
    let events = NetworkEvents {
        devices: place.devices.clone(),
        uplinks: handler.uplinks.clone(),
        outgoing: Arc::new(Outgoing::new(place.store.clone(), handler.output.clone(), place.clock.clone())),
        output: handler.output.clone(),
        traffic: Arc::default(),
        clock: place.clock.clone(),
    };
    let registration = Registration { app_id: app(), is_automatic: false, ids: DeviceIds::Eui };
    let sender = NetworkDevice { dev_eui: device("my-app").lorawan.dev_eui, ..NetworkDevice::default() };
    let join = NetworkEvent::Join(NetworkJoin { device: sender, ..NetworkJoin::default() });
    assert_eq!(handler.look_after(HOUR).await, ["dev"]);
    events.handle(&registration, join).await.unwrap();
    assert!(handler.look().await.is_empty());
    assert!(handler.look_after(HOUR - MINUTE).await.is_empty());
    assert_eq!(handler.look_after(MINUTE).await, ["dev"]);
}

#[tokio::test]
async fn the_functions_of_an_application_do_not_change_its_time() {
    let place = Place::with_time().await;
    let application = Application::with_functions(app(), "cayennelpp".to_owned(), Default::default());
    place.applications.set(application, JoinKeyChange::Keep, Default::default()).await.unwrap();
    let summary = place.applications.summary(&app()).await.unwrap();
    assert_eq!(summary.silent_after, Some("1h".parse().unwrap()));
    assert!(place.applications.set_silent_after(&id("nobody"), None).await.is_err());
}
