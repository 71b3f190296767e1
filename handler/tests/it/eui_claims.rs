//! EUIs that several applications want: only one gets them, whenever a process is killed.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use handler::{
    application::Applications,
    device::{Device, Devices, Lorawan},
};
use store::{Batch, Commit, Key, Store, Tag};
use testing::{FailingStore, ManualClock, RecordingStore};
use types::{AppEui, DevEui, DevicePath, Kind, Kinded};

use crate::{
    harness::sealer,
    records::{device, id},
};

/// More commits than setting a device takes.
const COMMITS_MAX: i64 = 5;

/// Two applications without devices.
async fn applications(store: Arc<dyn Store>, clock: Arc<ManualClock>) -> (Applications, Devices) {
    let sealer = sealer(store.as_ref()).await;
    let applications = Applications::new(store.clone(), sealer.clone());
    for app_id in ["app-one", "app-two"] {
        applications.register(&id(app_id)).await.unwrap();
    }
    (applications, Devices::new(store, sealer, clock))
}

/// The device of an application; both have the same EUIs.
fn same(app_id: &str) -> Device {
    Device { lorawan: Lorawan { ..device("app-one").lorawan }, ..device(app_id) }
}

async fn has_device(devices: &Devices, app_id: &str) -> bool {
    devices.get(DevicePath { app_id: &id(app_id), dev_id: &same(app_id).dev_id }).await.is_ok()
}

#[tokio::test]
async fn a_killed_process_leaves_a_pair_to_one_application_or_to_none() {
    for commits in 0..COMMITS_MAX {
        let clock = ManualClock::new();
        let store = Arc::new(FailingStore::new(clock.for_store()));
        let (_, devices) = applications(store.clone(), clock.clone()).await;
        store.fail_after(commits);
        let was_set = devices.set(same("app-one")).await.is_ok();
        store.recover();
        assert_eq!(has_device(&devices, "app-one").await, was_set, "after {commits} commits");

        clock.advance(Duration::from_secs(3600));
        match devices.set(same("app-two")).await {
            Ok(_) => assert!(!was_set, "after {commits} commits"),
            Err(error) => assert!(was_set && error.kind() == Kind::AlreadyExists, "after {commits} commits: {error}"),
        }
        let again = devices.set(same("app-one")).await;
        assert_eq!(
            again.map(drop).map_err(|error| error.kind()),
            if was_set { Ok(()) } else { Err(Kind::AlreadyExists) }
        );
    }
}

#[tokio::test]
async fn the_application_of_a_killed_process_can_repeat_the_call_at_once() {
    for commits in 0..COMMITS_MAX {
        let clock = ManualClock::new();
        let store = Arc::new(FailingStore::new(clock.for_store()));
        let (_, devices) = applications(store.clone(), clock).await;
        store.fail_after(commits);
        _ = devices.set(same("app-one")).await;
        store.recover();
        devices.set(same("app-one")).await.unwrap();
        assert_eq!(devices.set(same("app-two")).await.unwrap_err().kind(), Kind::AlreadyExists);
    }
}

#[tokio::test]
async fn of_two_applications_at_the_same_time_one_gets_the_pair() {
    // Interrupts the first call after each of its reads.
    for reads in 0..4 {
        let clock = ManualClock::new();
        let store = Arc::new(RecordingStore::new(clock.for_store()));
        let (_, devices) = applications(store.clone(), clock).await;
        let other = devices.clone();
        let interruption = (0..reads).fold(async move { drop(other.set(same("app-two")).await) }.boxed(), |then, _| {
            let store = store.clone();
            async move { store.interrupt(then) }.boxed()
        });
        store.interrupt(interruption);
        _ = devices.set(same("app-one")).await;
        let holders = [has_device(&devices, "app-one").await, has_device(&devices, "app-two").await];
        assert!(holders.contains(&true) && holders != [true, true], "after {reads} reads: {holders:?}");
    }
}

/// As it was stored by a version without holders.
async fn lose_holder(store: &dyn Store, device: &Device) {
    let euis = format!("{}-{}", device.lorawan.app_eui, device.lorawan.dev_eui);
    let holder = Key::new(&Tag::named("e", &euis).unwrap(), "handler/holder").unwrap();
    assert!(store.get(std::slice::from_ref(&holder)).await.unwrap()[0].is_some());
    assert_eq!(store.commit(Batch::new().delete(holder)).await.unwrap(), Commit::Done);
}

#[tokio::test]
async fn a_pair_without_a_holder_gets_one_when_its_device_is_read() {
    let clock = ManualClock::new();
    let store = Arc::new(FailingStore::new(clock.for_store()));
    let (_, devices) = applications(store.clone(), clock).await;
    devices.set(same("app-one")).await.unwrap();
    lose_holder(store.as_ref(), &same("app-one")).await;
    assert!(has_device(&devices, "app-one").await);
    assert_eq!(devices.set(same("app-two")).await.unwrap_err().kind(), Kind::AlreadyExists);
    // A pair that somebody holds is left to its holder.
    assert!(has_device(&devices, "app-one").await);
    devices.delete(DevicePath { app_id: &id("app-one"), dev_id: &same("app-one").dev_id }).await.unwrap();
    devices.set(same("app-two")).await.unwrap();
}

#[tokio::test]
async fn a_killed_deletion_frees_the_pair() {
    for commits in 0..4 {
        let clock = ManualClock::new();
        let store = Arc::new(FailingStore::new(clock.for_store()));
        let (_, devices) = applications(store.clone(), clock).await;
        devices.set(same("app-one")).await.unwrap();
        store.fail_after(commits);
        _ = devices.delete(DevicePath { app_id: &id("app-one"), dev_id: &same("app-one").dev_id }).await;
        store.recover();
        let is_free = !has_device(&devices, "app-one").await;
        assert_eq!(devices.set(same("app-two")).await.is_ok(), is_free, "after {commits} commits");
    }
}

/// A registration template: it has no DevEUI.
fn template(app_id: &str, dev_id: &str) -> Device {
    let lorawan = Lorawan { app_eui: AppEui::new([7; 8]), dev_eui: DevEui::default(), ..device("app-one").lorawan };
    Device { dev_id: dev_id.parse().unwrap(), lorawan, ..device(app_id) }
}

/// As it was stored when several templates could have one AppEUI.
async fn lose_name(store: &dyn Store, template: &Device) {
    lose_holder(store, template).await;
    let euis = format!("{}-{}", template.lorawan.app_eui, template.lorawan.dev_eui);
    let name = Key::new(&Tag::application(template.app_id.as_str()).unwrap(), &format!("handler/eui/{euis}")).unwrap();
    assert!(store.get(std::slice::from_ref(&name)).await.unwrap()[0].is_some());
    assert_eq!(store.commit(Batch::new().delete(name)).await.unwrap(), Commit::Done);
}

#[tokio::test]
async fn an_old_template_becomes_the_only_one_when_it_is_saved() {
    let clock = ManualClock::new();
    let store = Arc::new(FailingStore::new(clock.for_store()));
    let (_, devices) = applications(store.clone(), clock).await;
    devices.set(template("app-one", "old")).await.unwrap();
    lose_name(store.as_ref(), &template("app-one", "old")).await;
    devices.set(template("app-one", "old")).await.unwrap();
    for other in [template("app-one", "new"), template("app-two", "new")] {
        assert_eq!(devices.set(other).await.unwrap_err().kind(), Kind::AlreadyExists);
    }
}

#[tokio::test]
async fn an_old_template_does_not_give_up_what_another_has() {
    let clock = ManualClock::new();
    let store = Arc::new(FailingStore::new(clock.for_store()));
    let (_, devices) = applications(store.clone(), clock).await;
    devices.set(template("app-one", "old")).await.unwrap();
    lose_name(store.as_ref(), &template("app-one", "old")).await;
    devices.set(template("app-two", "new")).await.unwrap();
    // It can be changed, although another application has its AppEUI.
    devices.set(template("app-one", "old")).await.unwrap();
    let mut changed = template("app-one", "old");
    changed.lorawan.app_eui = AppEui::new([9; 8]);
    devices.set(changed).await.unwrap();
    assert_eq!(devices.set(template("app-one", "newest")).await.unwrap_err().kind(), Kind::AlreadyExists);
}
