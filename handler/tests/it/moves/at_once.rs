//! Changes while a device moves: other processes complete the move, and owners change devices at any moment.

use std::{future::pending, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use handler::device::{Device, Devices, Lorawan};
use testing::{ManualClock, RecordingStore};
use tokio::sync::oneshot;
use types::{Kind, Kinded};

use super::{COMMITS_MAX, COMMITS_TO_DECIDE, Fixture, mover, place, there};
use crate::records::id;

/// The reads until a process knows what becomes of a move that it completes, or fewer.
const READS: usize = 4;

/// Does something once this many commits and one more are done.
fn interrupt_after(store: &Arc<RecordingStore>, commits: i64, interruption: BoxFuture<'static, ()>) {
    let nested = (0..commits).fold(interruption, |then, _| {
        let store = store.clone();
        async move { store.interrupt_commit(then) }.boxed()
    });
    store.interrupt_commit(nested);
}

/// Does some work in a process that is killed once this many commits and one more are done.
async fn killed_after(store: &Arc<RecordingStore>, commits: i64, work: impl Future<Output = ()> + Send) {
    let (dies, dead) = oneshot::channel();
    let death = async move {
        dies.send(()).unwrap();
        pending::<()>().await;
    };
    interrupt_after(store, commits, death.boxed());
    tokio::select! {
        () = work => {}
        dead = dead => dead.unwrap(),
    }
    store.interrupt_commit(async {}.boxed());
}

/// Moves the device, and does something else after one of the commits.
async fn interrupted_after(
    commits: i64,
    interruption: impl FnOnce(Devices) -> BoxFuture<'static, ()>,
) -> (Fixture, Result<(), Kind>) {
    let clock = ManualClock::new();
    let store = Arc::new(RecordingStore::new(clock.for_store()));
    let fixture = Fixture::over(store.clone(), clock).await;
    interrupt_after(&store, commits, interruption(fixture.devices.clone()));
    let moved = fixture.devices.move_device(&there()).await;
    (fixture, moved.map(drop).map_err(|error| error.kind()))
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test]
async fn several_processes_may_complete_a_move_at_once() {
    for commits in 0..COMMITS_MAX {
        let complete = |devices: Devices| async move { _ = devices.complete_move(&there()).await }.boxed();
        let (fixture, moved) = interrupted_after(commits, complete).await;
        assert_eq!(moved, Ok(()), "after {commits} commits");
        fixture.resume().await;
        assert_eq!(fixture.places().await, ["app-two"], "after {commits} commits");
        fixture.check_euis_of("app-two").await;
    }
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test]
async fn of_two_moves_at_once_one_is_made() {
    for commits in 0..COMMITS_MAX {
        let again = |devices: Devices| async move { _ = devices.move_device(&there()).await }.boxed();
        let (fixture, _) = interrupted_after(commits, again).await;
        fixture.resume().await;
        assert_eq!(fixture.places().await, ["app-two"], "after {commits} commits");
        fixture.check_euis_of("app-two").await;
    }
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test]
async fn a_device_that_changes_while_it_moves_keeps_the_change() {
    for commits in 0..COMMITS_MAX {
        let change = |devices: Devices| {
            let changed = Device { description: "By the gate".to_owned(), ..mover("app-one", "dev") };
            async move { _ = devices.set(changed).await }.boxed()
        };
        let (fixture, moved) = interrupted_after(commits, change).await;
        assert_eq!(moved, Ok(()), "after {commits} commits");
        let device = fixture.devices.get((&place("app-two", "new")).into()).await.unwrap();
        let is_changed = commits + 1 < COMMITS_TO_DECIDE;
        assert_eq!(device.description == "By the gate", is_changed, "after {commits} commits");
        if !is_changed {
            // Whoever was too late was refused, or made another device without these EUIs.
            fixture.check_euis_of("app-two").await;
        }
    }
}

#[tokio::test]
async fn a_move_that_is_refused_gives_the_id_and_the_euis_back_at_once() {
    for commits in 0..COMMITS_TO_DECIDE - 1 {
        let delete = |devices: Devices| {
            async move { _ = devices.delete((&place("app-one", "dev")).into()).await.unwrap() }.boxed()
        };
        let (fixture, moved) = interrupted_after(commits, delete).await;
        assert_eq!(moved, Err(Kind::NotFound), "after {commits} commits");
        let registered = fixture.devices.set(mover("app-two", "new")).await;
        assert!(registered.is_ok(), "after {commits} commits: {registered:?}");
        let left = fixture.records("app-two").await;
        let is_left = |path: &&String| path.starts_with("arriving/") || path.starts_with("claiming/");
        assert_eq!(left.iter().find(is_left), None, "after {commits} commits");
    }
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test]
async fn processes_that_disagree_leave_a_device_in_one_application() {
    for (reads, commits) in (0..READS).flat_map(|reads| (0..COMMITS_MAX).map(move |commits| (reads, commits))) {
        let clock = ManualClock::new();
        let store = Arc::new(RecordingStore::new(clock.for_store()));
        let fixture = Fixture::over(store.clone(), clock.clone()).await;
        let devices = fixture.devices.clone();
        let decide = async { _ = devices.move_device(&there()).await };
        killed_after(&store, COMMITS_TO_DECIDE - 1, decide).await;
        // The id is not kept free for ever. One process finds it taken, another one free, and is killed.
        clock.advance(Duration::from_secs(2 * 3600));
        fixture.devices.set(Device { lorawan: Lorawan::default(), ..mover("app-two", "new") }).await.unwrap();
        let (devices, others) = (fixture.devices.clone(), store.clone());
        let other_process = async move {
            devices.delete((&place("app-two", "new")).into()).await.unwrap();
            let complete = async { _ = devices.complete_move(&there()).await };
            killed_after(&others, commits, complete).await;
        };
        let nested = (0..reads).fold(other_process.boxed(), |then, _| {
            let store = store.clone();
            async move { store.interrupt(then) }.boxed()
        });
        store.interrupt(nested);
        _ = fixture.devices.complete_move(&there()).await;
        fixture.resume().await;
        let places = fixture.places().await;
        assert_eq!(places.len(), 1, "after {reads} reads and {commits} commits: {places:?}");
        fixture.check_euis_of(places[0]).await;
    }
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test]
async fn a_move_that_was_begun_twice_is_forgotten_in_the_end() {
    for commits in COMMITS_TO_DECIDE..COMMITS_MAX {
        let clock = ManualClock::new();
        let store = Arc::new(RecordingStore::new(clock.for_store()));
        let fixture = Fixture::over(store.clone(), clock.clone()).await;
        let (devices, others, later) = (fixture.devices.clone(), store.clone(), clock.clone());
        let second = async move {
            later.advance(Duration::from_secs(1));
            let move_it = async { _ = devices.move_device(&there()).await };
            killed_after(&others, commits, move_it).await;
        };
        interrupt_after(&store, 0, second.boxed());
        _ = fixture.devices.move_device(&there()).await;
        fixture.resume().await;
        assert_eq!(fixture.places().await, ["app-two"], "after {commits} commits");
        clock.advance(Duration::from_secs(2 * 3600));
        fixture.resume().await;
        assert_eq!(fixture.devices.moves(None).await.unwrap(), [], "after {commits} commits");
        let left = fixture.records("app-two").await;
        assert!(!left.iter().any(|path| path.starts_with("arriving/")), "after {commits} commits: {left:?}");
    }
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test]
async fn a_device_that_has_arrived_keeps_its_euis_if_its_old_application_is_deleted() {
    let mut arrived = 0;
    for commits in 0..COMMITS_MAX {
        let clock = ManualClock::new();
        let store = Arc::new(RecordingStore::new(clock.for_store()));
        let fixture = Fixture::over(store.clone(), clock).await;
        let applications = fixture.applications.clone();
        let delete = async move { applications.delete(&id("app-one")).await.unwrap() };
        interrupt_after(&store, commits, delete.boxed());
        _ = fixture.devices.move_device(&there()).await;
        store.interrupt_commit(async {}.boxed());
        fixture.resume().await;
        _ = fixture.applications.register(&id("app-one")).await;
        let places = fixture.places().await;
        assert_ne!(places, ["app-one"], "after {commits} commits");
        if !places.is_empty() {
            arrived += 1;
            fixture.check_euis_of("app-two").await;
        }
    }
    assert!(arrived > 0, "a device arrives before its old application is deleted");
}
