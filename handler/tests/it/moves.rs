//! Devices that move to another application: whole, once, and whenever a process is killed.

mod at_once;

use std::{sync::Arc, time::Duration};

use handler::{
    application::Applications,
    device::{Device, Devices, Lorawan, Move},
};
use store::{Batch, Commit, Key, Redis, RedisSettings, Store, Tag};
use testing::{FailingStore, ManualClock, RedisProcess};
use types::{AppId, DevId, Kind, Kinded};

use crate::{
    harness::sealer,
    records::{device, id},
};

/// More commits than a move takes.
const COMMITS_MAX: i64 = 11;
/// The commits until a move is decided.
const COMMITS_TO_DECIDE: i64 = 3;

const COUNTERS: &str = r#"{"f_cnt_up":7,"f_cnt_down":3,"last_seen":5,"answered":{"f_cnt":2,"at":4}}"#;
const NONCES: &str = r#"{"dev":["0001"],"app":["000002"]}"#;

/// Two applications; the first one has a device with keys, counters and nonces.
struct Fixture {
    store: Arc<dyn Store>,
    applications: Applications,
    devices: Devices,
}

impl Fixture {
    async fn over(store: Arc<dyn Store>, clock: Arc<ManualClock>) -> Self {
        let sealer = sealer(store.as_ref()).await;
        let applications = Applications::new(store.clone(), sealer.clone());
        let devices = Devices::new(store.clone(), sealer, clock);
        for app_id in ["app-one", "app-two"] {
            applications.register(&id(app_id)).await.unwrap();
        }
        devices.set(mover("app-one", "dev")).await.unwrap();
        for (path, value) in [("frame-counters/dev", COUNTERS), ("nonces/dev", NONCES), ("downlinks/dev", "[]")] {
            assert_eq!(store.commit(Batch::new().put(key("app-one", path), value)).await.unwrap(), Commit::Done);
        }
        Self { store, applications, devices }
    }

    /// The applications that have the device, whole.
    async fn places(&self) -> Vec<&'static str> {
        let mut places = Vec::new();
        for (app_id, dev_id) in [("app-one", "dev"), ("app-two", "new")] {
            let (counters, nonces) = (format!("frame-counters/{dev_id}"), format!("nonces/{dev_id}"));
            let kept = self.store.get(&[key(app_id, &counters), key(app_id, &nonces)]).await.unwrap();
            let kept: Vec<_> = kept.into_iter().flatten().map(|entry| entry.value).collect();
            match self.devices.get((&place(app_id, dev_id)).into()).await {
                Ok(device) => {
                    assert_eq!(device, counted(mover(app_id, dev_id)));
                    assert_eq!(kept, [COUNTERS, NONCES]);
                    places.push(app_id);
                }
                // For a while, its id is kept free for it.
                Err(error) => {
                    let is_absent = matches!(error.kind(), Kind::NotFound | Kind::Conflict);
                    assert!(kept.is_empty() && is_absent, "{error}");
                }
            }
        }
        places
    }

    /// Completes what a killed process left.
    async fn resume(&self) {
        for moving in self.devices.moves(None).await.unwrap() {
            _ = self.devices.complete_move(&moving).await;
        }
    }

    /// The records of an application beside itself and its functions.
    async fn records(&self, app_id: &str) -> Vec<String> {
        let found = self.store.list(&Key::new(&Tag::application(app_id).unwrap(), "").unwrap(), None, 100).await;
        let paths = found.unwrap().into_iter().map(|entry| entry.key.path().replace("handler/", ""));
        paths.filter(|path| path != "application" && path != "functions").collect()
    }

    /// Succeeds if nobody but this application may have the EUIs of the device.
    async fn check_euis_of(&self, place: &str) {
        let (holder, _) = self.devices.holder(euis().app_eui, euis().dev_eui).await.unwrap().unwrap();
        assert_eq!(holder.as_str(), place);
        for app_id in ["app-one", "app-two"] {
            let error = self.devices.set(mover(app_id, "other")).await.unwrap_err();
            assert_eq!(error.kind(), Kind::AlreadyExists, "{app_id}: {error}");
        }
    }
}

fn euis() -> Lorawan {
    device("app-one").lorawan
}

fn key(app_id: &str, path: &str) -> Key {
    Key::new(&Tag::application(app_id).unwrap(), &format!("handler/{path}")).unwrap()
}

/// The device as an application has it.
fn mover(app_id: &str, dev_id: &str) -> Device {
    let lorawan = Lorawan {
        app_key: Some("2B7E151628AED2A6ABF7158809CF4F3C".parse().unwrap()),
        app_s_key: Some("2B7E151628AED2A6ABF7158809CF4F3D".parse().unwrap()),
        nwk_s_key: Some("2B7E151628AED2A6ABF7158809CF4F3E".parse().unwrap()),
        dev_addr: Some("26000001".parse().unwrap()),
        uses32_bit_f_cnt: true,
        activation_constraints: "local".to_owned(),
        ..euis()
    };
    Device {
        dev_id: dev_id.parse().unwrap(),
        description: "By the door".to_owned(),
        latitude: 52.5,
        attributes: [("floor".to_owned(), "3".to_owned())].into(),
        lorawan,
        ..device(app_id)
    }
}

/// The same with its counters.
fn counted(device: Device) -> Device {
    let lorawan = Lorawan { f_cnt_up: 7, f_cnt_down: 3, last_seen: 5, ..device.lorawan };
    Device { lorawan, ..device }
}

fn place(app_id: &str, dev_id: &str) -> (AppId, DevId) {
    (id(app_id), dev_id.parse().unwrap())
}

fn there() -> Move {
    Move { from: place("app-one", "dev"), to: place("app-two", "new") }
}

fn back() -> Move {
    let Move { from, to } = there();
    Move { from: to, to: from }
}

async fn killed_after(commits: i64) -> (Arc<ManualClock>, Fixture, bool) {
    let clock = ManualClock::new();
    let store = Arc::new(FailingStore::new(clock.for_store()));
    let fixture = Fixture::over(store.clone(), clock.clone()).await;
    store.fail_after(commits);
    let was_moved = fixture.devices.move_device(&there()).await.is_ok();
    store.recover();
    (clock, fixture, was_moved)
}

async fn a_device_moves_whole_there_and_back(fixture: Fixture) {
    let before = fixture.records("app-one").await;
    let moved = fixture.devices.move_device(&there()).await.unwrap();
    assert_eq!((moved.before, moved.device), (counted(mover("app-one", "dev")), counted(mover("app-two", "new"))));
    assert_eq!(fixture.places().await, ["app-two"]);
    assert_eq!(fixture.records("app-one").await, Vec::<String>::new(), "nothing is left");
    fixture.check_euis_of("app-two").await;
    assert_eq!(fixture.devices.moves(None).await.unwrap(), []);
    // Its id is free in the old application.
    fixture.devices.set(Device { lorawan: Lorawan::default(), ..mover("app-one", "dev") }).await.unwrap();
    let error = fixture.devices.move_device(&back()).await.err().unwrap();
    assert_eq!(error.to_string(), "Device app-one:dev already exists");
    fixture.check_euis_of("app-two").await;
    fixture.devices.delete((&place("app-one", "dev")).into()).await.unwrap();
    fixture.devices.move_device(&back()).await.unwrap();
    assert_eq!(fixture.places().await, ["app-one"]);
    fixture.check_euis_of("app-one").await;
    let is_queue_or_deletion = |path: &String| path.starts_with("downlinks/") || path.starts_with("deleted/");
    let kept: Vec<_> =
        fixture.records("app-one").await.into_iter().filter(|path| !is_queue_or_deletion(path)).collect();
    let before: Vec<_> = before.into_iter().filter(|path| !is_queue_or_deletion(path)).collect();
    assert_eq!(kept, before);
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test]
async fn a_device_moves_whole_there_and_back_on_the_embedded_store() {
    let clock = ManualClock::new();
    let store = Arc::new(FailingStore::new(clock.for_store()));
    a_device_moves_whole_there_and_back(Fixture::over(store, clock).await).await;
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test]
async fn a_device_moves_whole_there_and_back_on_redis() {
    let Some(redis) = RedisProcess::start() else { return };
    let clock = ManualClock::new();
    let settings = RedisSettings { urls: vec![redis.url()], ..RedisSettings::default() };
    let store = Arc::new(Redis::connect(&settings, clock.for_store()).await.unwrap());
    a_device_moves_whole_there_and_back(Fixture::over(store, clock).await).await;
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test]
async fn what_cannot_be_moved_stays_as_it_is() {
    let (_, fixture, _) = killed_after(0).await;
    fixture.devices.set(Device { lorawan: Lorawan::default(), ..mover("app-two", "taken") }).await.unwrap();
    let (records, others) = (fixture.records("app-one").await, fixture.records("app-two").await);
    let unregistered = "Application app-four not found on this handler: register it with `airlock applications select \
                        app-four` and then `airlock applications register`, or on its page in the console";
    for (from, to, kind, text) in [
        (("app-one", "dev"), ("app-two", "taken"), Kind::AlreadyExists, "Device app-two:taken already exists"),
        (("app-one", "nobody"), ("app-two", "new"), Kind::NotFound, "Device app-one:nobody not found"),
        (("app-one", "dev"), ("app-four", "new"), Kind::NotFound, unregistered),
        (("app-four", "dev"), ("app-two", "new"), Kind::NotFound, unregistered),
        (
            ("app-one", "dev"),
            ("app-one", "new"),
            Kind::Invalid,
            "Application not valid: the device is in application app-one already: name another one",
        ),
    ] {
        let moving = Move { from: place(from.0, from.1), to: place(to.0, to.1) };
        let error = fixture.devices.move_device(&moving).await.err().unwrap();
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, text));
    }
    assert_eq!((fixture.records("app-one").await, fixture.records("app-two").await), (records, others));
    assert_eq!(fixture.places().await, ["app-one"]);
    assert_eq!(fixture.devices.moves(None).await.unwrap(), []);
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test]
async fn the_alarm_of_a_device_is_where_the_device_is() {
    let clock = ManualClock::new();
    let fixture = Fixture::over(Arc::new(FailingStore::new(clock.for_store())), clock).await;
    for app_id in ["app-one", "app-two"] {
        fixture.applications.set_silent_after(&id(app_id), Some("1h".parse().unwrap())).await.unwrap();
    }
    let places = [("app-one", "alarm/dev"), ("app-two", "alarm/new")];
    for (moving, [(old, old_alarm), (new, new_alarm)]) in [(there(), places), (back(), [places[1], places[0]])] {
        fixture.devices.move_device(&moving).await.unwrap();
        let found = fixture.store.get(&[key(new, new_alarm)]).await.unwrap().remove(0).unwrap();
        let alarm: serde_json::Value = serde_json::from_slice(&found.value).unwrap();
        assert!(alarm["due"].is_string() && alarm["last_seen"].is_string(), "{alarm}");
        assert!(fixture.store.get(&[key(old, old_alarm)]).await.unwrap().remove(0).is_none());
    }
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test]
async fn a_killed_process_leaves_a_device_whole_in_one_application() {
    for commits in 0..COMMITS_MAX {
        let (_, fixture, was_moved) = killed_after(commits).await;
        assert!(was_moved || commits + 1 < COMMITS_MAX, "a move takes more commits than this test has");
        fixture.resume().await;
        let decided = commits >= COMMITS_TO_DECIDE;
        let place = if decided { "app-two" } else { "app-one" };
        assert_eq!(fixture.places().await, [place], "after {commits} commits");
        if decided {
            assert_eq!(fixture.records("app-one").await, Vec::<String>::new(), "after {commits} commits");
            fixture.check_euis_of("app-two").await;
            fixture.devices.move_device(&back()).await.unwrap();
            assert_eq!(fixture.places().await, ["app-one"], "after {commits} commits");
        }
        // The call can be repeated at once.
        fixture.devices.move_device(&there()).await.unwrap();
        assert_eq!(fixture.places().await, ["app-two"], "after {commits} commits");
    }
}

#[tokio::test]
async fn a_move_that_is_undone_after_a_kill_gives_the_euis_back_at_once() {
    for commits in 0..COMMITS_TO_DECIDE {
        let (_, fixture, _) = killed_after(commits).await;
        fixture.resume().await;
        assert_eq!(fixture.places().await, ["app-one"], "after {commits} commits");
        fixture.devices.delete((&place("app-one", "dev")).into()).await.unwrap();
        let registered = fixture.devices.set(mover("app-two", "new")).await;
        assert!(registered.is_ok(), "after {commits} commits: {registered:?}");
    }
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test]
async fn a_move_that_was_killed_is_forgotten_in_the_end() {
    for commits in 0..COMMITS_MAX {
        let (clock, fixture, _) = killed_after(commits).await;
        fixture.resume().await;
        clock.advance(Duration::from_secs(2 * 3600));
        fixture.resume().await;
        assert_eq!(fixture.devices.moves(None).await.unwrap(), [], "after {commits} commits");
        let left = [fixture.records("app-one").await, fixture.records("app-two").await].concat();
        let is_left = |path: &&String| ["leaving/", "arriving/", "claiming/"].iter().any(|kind| path.starts_with(kind));
        assert_eq!(left.iter().find(is_left), None, "after {commits} commits");
    }
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test]
async fn nobody_takes_the_id_or_the_euis_of_a_device_that_moves() {
    let (_, fixture, _) = killed_after(COMMITS_TO_DECIDE).await;
    for (app_id, dev_id) in [("app-one", "dev"), ("app-two", "new"), ("app-one", "other"), ("app-two", "other")] {
        let error = fixture.devices.set(mover(app_id, dev_id)).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Conflict, "{app_id} {dev_id}: {error}");
    }
    // Whoever asks for it where it arrives tries again; where it was, it is gone.
    let error = fixture.devices.get((&place("app-two", "new")).into()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict, "{error}");
    let error = fixture.devices.get((&place("app-one", "dev")).into()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound, "{error}");
    let error = fixture.devices.move_device(&there()).await.err().unwrap();
    assert_eq!(error.kind(), Kind::Conflict, "{error}");
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test]
async fn a_device_goes_back_if_its_new_id_was_taken_after_a_kill() {
    let (clock, fixture, _) = killed_after(COMMITS_TO_DECIDE).await;
    // The id is not kept free for ever.
    clock.advance(Duration::from_secs(2 * 3600));
    fixture.devices.set(Device { lorawan: Lorawan::default(), ..mover("app-two", "new") }).await.unwrap();
    let error = fixture.devices.complete_move(&there()).await.unwrap_err();
    assert_eq!(error.to_string(), "Device app-two:new already exists");
    fixture.devices.delete((&place("app-two", "new")).into()).await.unwrap();
    assert_eq!(fixture.places().await, ["app-one"]);
    fixture.check_euis_of("app-one").await;
    assert_eq!(fixture.devices.moves(None).await.unwrap(), []);
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test]
async fn a_device_goes_back_if_its_new_application_was_deleted_after_a_kill() {
    let (_, fixture, _) = killed_after(COMMITS_TO_DECIDE).await;
    fixture.applications.delete(&id("app-two")).await.unwrap();
    assert_eq!(fixture.devices.complete_move(&there()).await.unwrap_err().kind(), Kind::NotFound);
    assert_eq!(fixture.places().await, ["app-one"]);
    let waiting = "downlinks/dev".to_owned();
    assert!(fixture.records("app-one").await.contains(&waiting), "its downlinks come back with it");
    fixture.applications.register(&id("app-two")).await.unwrap();
    fixture.check_euis_of("app-one").await;
}
