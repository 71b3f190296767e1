//! Functions that a share of an application's devices has: in the store, and on uplinks.

use std::{collections::BTreeMap, sync::Arc};

use futures::FutureExt;
use handler::{
    Error, Settings,
    application::{
        Abandoned, Application, Applications, Counts, JoinKeyChange, Tally, Trial, VersionBounds, VersionOrigin,
        VersionUse,
    },
    device::{Device, Devices, Lorawan},
    output::Event,
    payload::Payloads,
    uplink::{Frame, LastHeardTimes, RunCounters, Uplinks},
};
use server::usage::Usage;
use store::{Key, Store, StoreClock, Tag};
use testing::{ManualClock, RecordingStore};
use types::{Kind, Kinded, Timestamp};

use crate::{
    harness::{recording_output::RecordingOutput, sealer},
    records::{application, device, id, pool},
};

const DEVICES: usize = 30;

/// An application with devices, whose functions return their number, over a store that records its reads.
struct Fixture {
    store: Arc<RecordingStore>,
    applications: Applications,
    devices: Devices,
}

impl Fixture {
    async fn new() -> Self {
        Self::with(VersionBounds::default()).await
    }

    async fn with(bounds: VersionBounds) -> Self {
        let store = Arc::new(RecordingStore::new(StoreClock::new(|| 0)));
        let sealer = sealer(store.as_ref()).await;
        let applications = Applications::new(store.clone(), sealer.clone()).with_version_bounds(bounds);
        applications.register(&id("my-app")).await.unwrap();
        let devices = Devices::new(store.clone(), sealer, ManualClock::new());
        let fixture = Self { store, applications, devices };
        fixture.set(1).await.unwrap();
        fixture
    }

    async fn add_devices(&self) {
        for number in 0..DEVICES {
            self.devices.set(numbered(number)).await.unwrap();
        }
    }

    async fn set(&self, number: u32) -> Result<u32, Error> {
        let set = self.applications.set(functions(number), JoinKeyChange::Keep, VersionOrigin::default()).await?;
        Ok(set.unwrap().number)
    }

    async fn start(&self, number: u32, share: f64) -> Result<u32, Error> {
        let trial = Trial::new(share, None, None).unwrap();
        let started = self.applications.start_candidate(functions(number), trial, VersionOrigin::default()).await?;
        Ok(started.number)
    }

    /// Each version that is kept and who has it, the newest first.
    async fn versions(&self) -> Vec<(u32, VersionUse)> {
        let listed = self.applications.versions(&id("my-app")).await.unwrap();
        listed.iter().map(|listed| (listed.version.number, listed.used)).collect()
    }

    async fn version(&self, number: u32) -> Application {
        self.applications.version(&id("my-app"), Some(number)).await.unwrap().application
    }

    /// Adds 100 good uplinks of the live version, and those of these devices that failed with the candidate.
    async fn add(&self, version: u32, failed: &[(&str, u64)]) -> Option<Abandoned> {
        let mut counts = Counts::new(version);
        (0..100).for_each(|_| counts.live.count(false, 10));
        for (dev_id, failed) in failed {
            (0..*failed).for_each(|_| counts.count_candidate(&dev_id.parse().unwrap(), true, 20));
        }
        self.applications.add_counts(&id("my-app"), &counts, Timestamp::from_millis(7)).await.unwrap()
    }

    /// The devices that have the candidate.
    async fn members(&self) -> Vec<String> {
        let candidate = self.applications.candidate(&id("my-app")).await.unwrap().candidate;
        let ids = (0..DEVICES).map(|number| numbered(number).dev_id);
        ids.filter(|dev_id| candidate.is_of(&id("my-app"), dev_id)).map(|dev_id| dev_id.to_string()).collect()
    }

    /// The paths of what is stored beside the application and its devices.
    async fn records(&self) -> Vec<String> {
        let all = self.store.list(&key("handler/"), None, 1000).await.unwrap();
        let paths = all.iter().map(|entry| entry.key.path().to_owned());
        paths.filter(|path| path.starts_with("handler/version/") || path == "handler/candidate").collect()
    }
}

fn key(path: &str) -> Key {
    Key::new(&Tag::application("my-app").unwrap(), path).unwrap()
}

fn functions(number: u32) -> Application {
    application("my-app", "custom", &format!("function Decoder() {{ return {{ n: {number} }}; }}"))
}

fn numbered(number: usize) -> Device {
    Device { dev_id: format!("dev-{number}").parse().unwrap(), lorawan: Lorawan::default(), ..device("my-app") }
}

// Conformance: A share of the devices tries functions, and keeps them, until they are promoted
#[tokio::test]
async fn devices_of_the_share_have_the_candidate_and_keep_it() {
    let fixture = Fixture::new().await;
    fixture.add_devices().await;
    assert_eq!(fixture.start(2, 50.0).await.unwrap(), 2);
    let members = fixture.members().await;
    assert!(!members.is_empty() && members.len() < DEVICES, "{members:?}");
    let output = Arc::new(RecordingOutput::default());
    let uplinks = Uplinks {
        applications: fixture.applications.clone(),
        devices: fixture.devices.clone(),
        payloads: Arc::new(Payloads::new(pool(), &Settings::default()).unwrap()),
        output: output.clone(),
        history: None,
        shows_version: true,
        trials: Default::default(),
        runs: Arc::new(RunCounters::new(ManualClock::new())),
        last_heard: Arc::new(LastHeardTimes::new(ManualClock::new())),
    };
    fixture.store.take_reads();
    let mut reads = BTreeMap::new();
    for _ in 0..2 {
        for number in 0..DEVICES {
            let dev_id = numbered(number).dev_id;
            let frame = Frame::simulated(id("my-app"), dev_id.clone(), 1, vec![1], Timestamp::from_millis(1)).unwrap();
            uplinks.handle(frame, &Usage::default()).await.unwrap();
            let message = output.take().pop().unwrap();
            let Event::Up(uplink) = message.event else { panic!("an uplink") };
            let expected = if members.contains(&dev_id.to_string()) { 2 } else { 1 };
            assert_eq!(uplink.payload_fields.unwrap().get(), format!(r#"{{"n":{expected}}}"#));
            assert_eq!(uplink.metadata.functions_version, expected);
        }
        fixture.store.take_reads().into_iter().for_each(|read| *reads.entry(read).or_insert(0) += 1);
    }
    // Each version is loaded once: they do not take each other's place.
    let sources = reads.iter().filter(|(read, _)| read.contains("functions") || read.contains("version/"));
    let sources: Vec<_> = sources.map(|(_, count)| *count).collect();
    assert_eq!(sources.iter().sum::<i32>(), 3, "{reads:?}");
}

// Conformance: A share of the devices tries functions, and keeps them, until they are promoted
#[tokio::test]
async fn functions_for_all_are_refused_until_the_candidate_has_ended() {
    let fixture = Fixture::new().await;
    for (started, expected) in [
        (fixture.start(1, 5.0).await, "these functions are live for all devices already"),
        (fixture.start(2, 5.0).await, ""),
        (fixture.start(3, 5.0).await, "first make it live for all with `airlock applications pf promote`"),
        (fixture.set(3).await, "version 2 has a share of 5% of the devices of application my-app"),
        (fixture.set(1).await, ""),
    ] {
        let text = started.map_or_else(|error| error.to_string(), |_| String::new());
        assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{text}");
    }
    let trial = Trial::new(20.0, Some(1.0), Some(7)).unwrap();
    fixture.applications.set_trial(&id("my-app"), trial).await.unwrap();
    assert_eq!(fixture.versions().await, [(2, VersionUse::Share(trial.share)), (1, VersionUse::Live)]);
    let other = fixture.applications.promote_candidate(&id("my-app"), 3).await.unwrap_err();
    assert_eq!(other.kind(), Kind::Conflict, "{other}");
    assert_eq!(fixture.applications.promote_candidate(&id("my-app"), 2).await.unwrap().number, 2);
    assert_eq!(fixture.versions().await, [(2, VersionUse::Live), (1, VersionUse::Older)]);
    assert_eq!((fixture.version(1).await, fixture.version(2).await), (functions(1), functions(2)));
    assert_eq!(fixture.records().await.len(), 1, "the text of version 1");
    assert_eq!(fixture.set(3).await.unwrap(), 3);
    let error = fixture.applications.promote_candidate(&id("my-app"), 2).await.unwrap_err();
    assert!(error.kind() == Kind::NotFound && error.to_string().contains("--share 5%"), "{error}");
}

#[tokio::test]
async fn an_abandoned_candidate_stays_an_older_version() {
    let fixture = Fixture::with(VersionBounds { count_max: 3, ..VersionBounds::default() }).await;
    assert_eq!(fixture.start(2, 5.0).await.unwrap(), 2);
    assert_eq!(fixture.applications.abandon_candidate(&id("my-app")).await.unwrap().version, 2);
    assert_eq!(fixture.versions().await, [(2, VersionUse::Older), (1, VersionUse::Live)]);
    let listed = fixture.applications.versions(&id("my-app")).await.unwrap();
    assert_eq!(listed[0].version.abandoned, None, "somebody abandoned it");
    assert_eq!((fixture.set(1).await.unwrap(), fixture.set(3).await.unwrap()), (1, 3));
    assert_eq!(fixture.version(2).await, functions(2));
    assert_eq!(fixture.start(4, 5.0).await.unwrap(), 4);
    let numbers: Vec<_> = fixture.versions().await.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [4, 3, 2], "the oldest was dropped");
    fixture.add(4, &[]).await;
    fixture.applications.delete(&id("my-app")).await.unwrap();
    assert_eq!(fixture.store.list(&key(""), None, 10).await.unwrap(), []);
}

#[tokio::test]
async fn a_candidate_may_differ_in_its_payload_format_only() {
    let fixture = Fixture::new().await;
    let (_, live) = (fixture.version(1).await, functions(1));
    let cayenne = application("my-app", "cayennelpp", "function Decoder() { return { n: 1 }; }");
    let trial = Trial::new(5.0, None, None).unwrap();
    fixture.applications.start_candidate(cayenne.clone(), trial, VersionOrigin::default()).await.unwrap();
    assert_eq!((fixture.version(1).await, fixture.version(2).await), (live.clone(), cayenne.clone()));
    fixture.applications.promote_candidate(&id("my-app"), 2).await.unwrap();
    assert_eq!((fixture.version(1).await, fixture.version(2).await), (live, cayenne));
}

// Conformance: A share of the devices tries functions, and keeps them, until they are promoted
#[tokio::test]
async fn what_several_handlers_count_is_judged_together() {
    let fixture = Fixture::new().await;
    fixture.add_devices().await;
    fixture.start(2, 50.0).await.unwrap();
    let members = fixture.members().await;
    let (one, other) = (members[0].as_str(), members[1].as_str());
    assert!(fixture.add(2, &[(one, 30)]).await.is_none(), "one of several devices may be broken");
    assert!(fixture.add(1, &[(one, 30), (other, 30)]).await.is_none(), "of an earlier candidate");
    let state = fixture.applications.candidate(&id("my-app")).await.unwrap();
    assert_eq!(state.counts.candidate, Tally { uplinks: 30, failed: 30, fuel: 600 });
    // Another handler has added something in between.
    let applications = fixture.applications.clone();
    let added = async move {
        let mut counts = Counts::new(2);
        counts.live.count(true, 10);
        assert!(applications.add_counts(&id("my-app"), &counts, Timestamp::from_millis(6)).await.unwrap().is_none());
    };
    fixture.store.interrupt(added.boxed());
    let abandoned = fixture.add(2, &[(other, 10)]).await.expect("two devices fail");
    assert_eq!((abandoned.dev_id.as_str(), abandoned.state.counts.live.uplinks), (one, 201));
    assert_eq!(fixture.applications.candidate(&id("my-app")).await.unwrap_err().kind(), Kind::NotFound);
    assert_eq!(fixture.versions().await, [(2, VersionUse::Older), (1, VersionUse::Live)]);
    assert_eq!(fixture.records().await.len(), 1, "the text of version 2, and no counts");
    assert!(fixture.add(2, &[(one, 30), (other, 30)]).await.is_none(), "it has ended");
    let listed = fixture.applications.versions(&id("my-app")).await.unwrap();
    let noted = listed[0].version.abandoned.expect("its version says so");
    assert_eq!((noted.time, noted.margin.percent(), noted.live), (Timestamp::from_millis(7), 5.0, Some(1)));
    assert_eq!(noted.results, Tally { uplinks: 40, failed: 40, fuel: 800 });
    assert_eq!((noted.live_results.uplinks, noted.live_results.failed), (201, 1));
    assert_eq!(listed[1].version.abandoned, None);
}

#[tokio::test]
async fn the_only_device_that_has_a_candidate_is_enough_to_end_it() {
    let fixture = Fixture::new().await;
    fixture.start(2, 50.0).await.unwrap();
    let members = fixture.members().await;
    let dev_id = members[0].parse().unwrap();
    fixture.devices.set(Device { dev_id, lorawan: Lorawan::default(), ..device("my-app") }).await.unwrap();
    assert!(fixture.add(2, &[(&members[0], 19)]).await.is_none(), "too few uplinks");
    assert!(fixture.add(2, &[(&members[0], 1)]).await.is_some());
}

// Conformance: A share of the devices tries functions, and keeps them, until they are promoted
#[tokio::test]
async fn a_candidate_that_is_promoted_at_the_same_time_is_not_abandoned() {
    let fixture = Fixture::new().await;
    fixture.start(2, 50.0).await.unwrap();
    let applications = fixture.applications.clone();
    let promoted = async move { drop(applications.promote_candidate(&id("my-app"), 2).await.unwrap()) };
    fixture.store.interrupt(promoted.boxed());
    assert!(fixture.add(2, &[("dev-1", 30), ("dev-2", 30)]).await.is_none());
    assert_eq!(fixture.versions().await, [(2, VersionUse::Live), (1, VersionUse::Older)]);
    assert_eq!(fixture.records().await.len(), 1, "the text of version 1, and no counts");
}
