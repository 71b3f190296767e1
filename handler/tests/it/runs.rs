//! Uplinks counted by application: what fails, and what it takes.

use std::{sync::Arc, time::Duration};

use handler::{
    Settings,
    application::{Application, Applications, JoinKeyChange, VersionOrigin},
    device::Devices,
    payload::Payloads,
    uplink::{ApplicationRuns, Frame, LastHeardTimes, RunCounters, RunFailure, Uplinks},
};
use runtime::{FailureKind, Sources};
use server::usage::Usage;
use store::{Embedded, Store, StoreClock};
use testing::ManualClock;
use types::{Clock, Timestamp};

use crate::{
    harness::{recording_output::RecordingOutput, sealer},
    records::{device, id, pool},
};

/// Uplinks that each application gets, with the payloads 0, 1, 2, and so on.
const UPLINKS: u8 = 12;

const GOOD: &str = "function Decoder(bytes) { return { n: bytes[0] }; }";
/// Fails on every fourth payload.
const BAD: &str = "function Decoder(bytes) { if (bytes[0] % 4 === 0) throw 'Alice'; return { n: bytes[0] }; }";
const REFUSE: &str = "function Validator() { return false; }";

/// Handles uplinks of applications with one device each, and counts them.
struct Fixture {
    applications: Applications,
    devices: Devices,
    uplinks: Uplinks,
}

impl Fixture {
    async fn new(clock: Arc<ManualClock>) -> Self {
        let store: Arc<dyn Store> = Arc::new(Embedded::in_memory(StoreClock::new(|| 0)).unwrap());
        let sealer = sealer(store.as_ref()).await;
        let applications = Applications::new(store.clone(), sealer.clone());
        let devices = Devices::new(store, sealer, clock.clone());
        let uplinks = Uplinks {
            applications: applications.clone(),
            devices: devices.clone(),
            payloads: Arc::new(Payloads::new(pool(), &Settings::default()).unwrap()),
            output: Arc::new(RecordingOutput::default()),
            history: None,
            shows_version: false,
            trials: Default::default(),
            runs: Arc::new(RunCounters::new(clock.clone())),
            last_heard: Arc::new(LastHeardTimes::new(clock)),
        };
        Self { applications, devices, uplinks }
    }

    /// Adds an application with these functions, and handles its uplinks.
    async fn handle(&self, app_id: &str, decoder: &str, validator: &str) {
        self.applications.register(&id(app_id)).await.unwrap();
        self.devices.set(device(app_id)).await.unwrap();
        let sources = Sources { decoder: decoder.to_owned(), validator: validator.to_owned(), ..Sources::default() };
        let application = Application::with_functions(id(app_id), "custom".to_owned(), sources);
        self.applications.set(application, JoinKeyChange::Replace, VersionOrigin::default()).await.unwrap();
        for number in 0..UPLINKS {
            let time = Timestamp::from_millis(1);
            let frame = Frame::simulated(id(app_id), "dev".parse().unwrap(), 1, vec![number], time).unwrap();
            let handled = self.uplinks.handle(frame, &Usage::default()).await;
            assert_eq!(handled.is_ok(), validator.is_empty(), "{handled:?}");
        }
    }
}

fn names(applications: &[ApplicationRuns]) -> Vec<&str> {
    applications.iter().map(|application| application.app_id.as_str()).collect()
}

// Conformance: Failures, fuel and time of functions are counted by application
#[tokio::test]
async fn applications_that_fail_and_that_do_not_are_counted_apart() {
    let clock = ManualClock::new();
    let fixture = Fixture::new(clock.clone()).await;
    fixture.handle("app-good", GOOD, "").await;
    fixture.handle("app-bad", BAD, "").await;
    fixture.handle("app-refused", GOOD, REFUSE).await;
    fixture.handle("app-without", "", "").await;
    let worst = fixture.uplinks.runs.worst(20);
    assert_eq!((names(&worst.failing), worst.since), (vec!["app-refused", "app-bad"], clock.now()));
    let [refused, bad] = &*worst.failing else { panic!("two fail") };
    assert_eq!((refused.recent.uplinks, refused.recent.failed, refused.recent.invalid), (12, 0, 12));
    assert_eq!((bad.recent.uplinks, bad.recent.failed, bad.recent.invalid), (12, 3, 0));
    assert_eq!(bad.total, bad.recent);
    let [refused, bad] = [refused, bad].map(|application| application.last_failure.unwrap());
    assert_eq!((refused.failure, refused.time), (RunFailure::Invalid, clock.now()));
    assert_eq!(bad.failure, RunFailure::Function(FailureKind::Thrown));

    let mut slowest = names(&worst.slowest);
    slowest.sort_unstable();
    assert_eq!(slowest, ["app-bad", "app-good", "app-refused"], "nothing runs without functions");
    let good = worst.slowest.iter().find(|application| application.app_id == id("app-good")).unwrap();
    let costs = good.recent;
    assert_eq!((costs.failures(), good.last_failure), (0, None));
    assert!(costs.mean_fuel() > 0 && costs.fuel_max >= costs.mean_fuel(), "{costs:?}");
    assert!(costs.mean_elapsed() > Duration::ZERO && costs.elapsed_max >= costs.mean_elapsed(), "{costs:?}");

    clock.advance(Duration::from_secs(2 * 3600));
    let worst = fixture.uplinks.runs.worst(20);
    assert!(worst.failing.is_empty() && worst.slowest.is_empty(), "{worst:?}");
}
