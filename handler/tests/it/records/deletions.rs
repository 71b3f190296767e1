//! Deletions of applications and devices: of everything in them, and completed when the process was killed.

use std::{future::pending, sync::Arc, time::Duration};

use futures::FutureExt;
use handler::{
    application::{Application, Applications},
    device::{Device, Devices, Lorawan},
};
use server::usage::Usage;
use store::{Key, Store, StoreClock};
use testing::{FailingStore, ManualClock};
use tokio::{sync::oneshot, time::timeout};
use types::{Clock, DevicePath, Kind, Kinded};

use super::{Fixture, decoder, device, id, tag};
use crate::harness::sealer;

/// Completes what a killed process left.
async fn resume_deletions(applications: &Applications) {
    for app_id in applications.deletions(None).await.unwrap() {
        if applications.complete_deletion(&app_id).await.unwrap() {
            applications.end_deletion(&app_id).await.unwrap();
        }
    }
}

// Conformance: Deleting an application deletes everything in it
#[tokio::test]
async fn deletes_everything_with_an_application() {
    let fixture = Fixture::new().await;
    fixture.save("app-one", "custom", &decoder(1)).await;
    let everything = Key::new(&tag("app-one"), "").unwrap();
    // The application, its functions and their versions, and the device with its EUIs.
    assert_eq!(fixture.store.list(&everything, None, 10).await.unwrap().len(), 5);
    fixture.applications.delete(&id("app-one")).await.unwrap();
    assert_eq!(fixture.store.list(&everything, None, 10).await.unwrap(), []);
    assert_eq!(fixture.fields("app-one").await.unwrap_err().kind(), Kind::NotFound);
    fixture.applications.register(&id("app-one")).await.unwrap();
    assert_eq!(fixture.applications.get(&id("app-one")).await.unwrap(), Application::new(id("app-one")));
}

#[tokio::test]
async fn a_deletion_that_its_caller_does_not_wait_for_is_noticed_and_completed() {
    let fixture = Fixture::new().await;
    let (began, has_begun) = oneshot::channel();
    fixture.store.interrupt_list(async { began.send(()).unwrap() }.then(|()| pending()).boxed());
    let app_id = id("app-one");
    tokio::select! {
        outcome = fixture.applications.delete(&app_id) => panic!("{outcome:?}"),
        begun = has_begun => begun.unwrap(),
    }
    assert_eq!(fixture.applications.get(&app_id).await.unwrap_err().kind(), Kind::NotFound);
    let interrupted = timeout(Duration::from_secs(60), fixture.applications.deletion_interrupted());
    interrupted.await.expect("somebody is told");
    resume_deletions(&fixture.applications).await;
    let everything = Key::new(&tag("app-one"), "").unwrap();
    assert_eq!(fixture.store.list(&everything, None, 10).await.unwrap(), []);
    fixture.applications.delete(&id("app-two")).await.unwrap();
    assert!(fixture.applications.deletion_interrupted().now_or_never().is_none(), "that one was not interrupted");
    fixture.applications.note_interruption();
    assert!(fixture.applications.deletion_interrupted().now_or_never().is_some(), "something else was");
}

/// An application with a device whose deletion was killed after so many commits; returns true if it was over by then.
async fn killed(commits: i64) -> (Arc<FailingStore>, Applications, Devices, bool) {
    let store = Arc::new(FailingStore::new(StoreClock::new(|| 0)));
    let sealer = sealer(store.as_ref()).await;
    let applications = Applications::new(store.clone(), sealer.clone());
    let devices = Devices::new(store.clone(), sealer, ManualClock::new());
    applications.register(&id("app-one")).await.unwrap();
    devices.set(device("app-one")).await.unwrap();
    store.fail_after(commits);
    let was_deleted = applications.delete(&id("app-one")).await.is_ok();
    store.recover();
    (store, applications, devices, was_deleted)
}

#[tokio::test]
async fn completes_a_deletion_that_was_killed() {
    for commits in 0..5 {
        let (store, applications, _devices, was_deleted) = killed(commits).await;
        resume_deletions(&applications).await;
        let left = store.list(&Key::new(&tag("app-one"), "").unwrap(), None, 10).await.unwrap();
        match applications.get(&id("app-one")).await {
            Ok(_) => assert!(left.len() == 4 && !was_deleted, "after {commits} commits: {left:?}"),
            Err(error) => {
                assert!(left.is_empty() && error.kind() == Kind::NotFound, "after {commits} commits: {left:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_new_application_inherits_nothing_from_a_deletion_that_was_killed() {
    for commits in 2..5 {
        let (_store, applications, devices, _was_deleted) = killed(commits).await;
        applications.register(&id("app-one")).await.unwrap();
        assert_eq!(
            devices.list(&id("app-one"), 0, 10, &Usage::default()).await.unwrap().total,
            0,
            "after {commits} commits"
        );
        resume_deletions(&applications).await;
        applications.get(&id("app-one")).await.unwrap();
    }
}

// Conformance: Deleting an application deletes everything in it
#[tokio::test]
async fn refuses_a_device_that_is_set_while_its_application_is_deleted() {
    let fixture = Fixture::new().await;
    let devices = fixture.uplinks.devices.clone();
    devices.delete(DevicePath { app_id: &id("app-one"), dev_id: &"dev".parse().unwrap() }).await.unwrap();
    let late = devices.clone();
    fixture.store.interrupt_list(
        async move { assert_eq!(late.set(device("app-one")).await.unwrap_err().kind(), Kind::NotFound) }.boxed(),
    );
    fixture.applications.delete(&id("app-one")).await.unwrap();
    assert_eq!(fixture.store.list(&Key::new(&tag("app-one"), "").unwrap(), None, 10).await.unwrap(), []);
}

/// An application with a device that has no EUIs, over a store that can fail.
async fn one_device() -> (Arc<ManualClock>, Arc<FailingStore>, Devices) {
    let clock = ManualClock::new();
    let store = Arc::new(FailingStore::new(clock.for_store()));
    let sealer = sealer(store.as_ref()).await;
    Applications::new(store.clone(), sealer.clone()).register(&id("app-one")).await.unwrap();
    let devices = Devices::new(store.clone(), sealer, clock.clone());
    devices.set(without_euis()).await.unwrap();
    (clock, store, devices)
}

fn without_euis() -> Device {
    Device { lorawan: Lorawan::default(), ..device("app-one") }
}

#[tokio::test]
async fn a_device_is_known_as_deleted_until_history_has_deleted_its_records() {
    for commits in 0..3 {
        let (clock, store, devices) = one_device().await;
        let (app_id, dev_id) = (id("app-one"), without_euis().dev_id);
        let path = DevicePath { app_id: &app_id, dev_id: &dev_id };
        store.fail_after(commits);
        let was_deleted = devices.delete(path).await.is_ok();
        store.recover();
        let deletion = devices.deletion(path).await.unwrap();
        assert_eq!(deletion.is_some(), was_deleted, "after {commits} commits");
        if let Some(deletion) = deletion {
            assert_eq!(devices.deletions(None).await.unwrap(), [(app_id.clone(), dev_id.clone())]);
            devices.end_deletion(&deletion).await.unwrap();
        }
        // One that was only announced is forgotten after a while.
        clock.advance(Duration::from_secs(2 * 3600));
        assert_eq!(devices.deletion(path).await.unwrap(), None);
        assert_eq!(devices.deletions(None).await.unwrap(), []);
        assert_eq!(devices.get(path).await.is_err(), was_deleted);
    }
}

#[tokio::test]
async fn the_end_of_a_deletion_spares_what_came_later() {
    let (clock, _store, devices) = one_device().await;
    let (app_id, dev_id) = (id("app-one"), without_euis().dev_id);
    let path = DevicePath { app_id: &app_id, dev_id: &dev_id };
    let deleted = clock.now();
    let first = devices.delete(path).await.unwrap();
    clock.advance(Duration::from_secs(10));
    assert_eq!(devices.deletion(path).await.unwrap().unwrap().until, clock.now());
    devices.set(without_euis()).await.unwrap();
    assert_eq!(devices.deletion(path).await.unwrap().unwrap().until, deleted);
    let second = devices.delete(path).await.unwrap();
    devices.end_deletion(&first).await.unwrap();
    assert!(devices.deletion(path).await.unwrap().is_some());
    assert_eq!(devices.deletions(None).await.unwrap().len(), 1);
    devices.end_deletion(&second).await.unwrap();
    assert_eq!(devices.deletions(None).await.unwrap(), []);
}
