//! Silent devices: one event for each silence, whatever happens to handlers, clocks and devices.

mod changes;
mod idle;
mod kills;
mod several;
mod slow;
mod turns;

use std::{sync::Arc, time::Duration};

use handler::{
    OneAtATime, Settings,
    application::Applications,
    device::{Device, Devices, Lorawan},
    output::Event,
    payload::Payloads,
    silence::{Environment, SilenceWatch},
    uplink::{Frame, LastHeardTimes, RunCounters, Uplinks},
};
use history::History;
use server::{ledger::Owners, usage::Usage};
use store::{Embedded, Entry, Key, Store, Tag};
use testing::{FixedRandom, ManualClock};
use tokio_util::sync::CancellationToken;
use types::{AppId, Clock, DevId, DevicePath, SILENT_AFTER, SilentEvent};

use crate::{
    harness::{recording_output::RecordingOutput, sealer},
    records::{device, id, pool},
};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// The store, clock and history of an application, which stay while handlers come and go.
struct Place {
    clock: Arc<ManualClock>,
    store: Arc<dyn Store>,
    history: Arc<History>,
    applications: Applications,
    devices: Devices,
    owners: Arc<Owners>,
    _dir: tempfile::TempDir,
}

/// A process.
struct Handler {
    clock: Arc<ManualClock>,
    uplinks: Arc<Uplinks>,
    output: Arc<RecordingOutput>,
    watch: SilenceWatch,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Alone,
    WithoutHistory,
    AmongOthers,
}

fn app() -> AppId {
    id("my-app")
}

fn dev(dev_id: &str) -> DevId {
    dev_id.parse().unwrap()
}

impl Place {
    /// With a device `dev`, and without a time after which it is silent.
    async fn new() -> Self {
        let clock = ManualClock::new();
        Self::over(Arc::new(Embedded::in_memory(clock.for_store()).unwrap()), clock).await
    }

    /// The same in this store.
    async fn over(store: Arc<dyn Store>, clock: Arc<ManualClock>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let sealer = sealer(store.as_ref()).await;
        let applications = Applications::new(store.clone(), sealer.clone());
        let devices = Devices::new(store.clone(), sealer, clock.clone());
        applications.register(&app()).await.unwrap();
        devices.set(device("my-app")).await.unwrap();
        let random = FixedRandom::new([7]);
        let environment =
            history::Environment { clock: clock.clone(), random: &random, owner_of: Arc::new(ToString::to_string) };
        let history = History::open(dir.path(), history::Settings::default(), environment).unwrap();
        let owners = Arc::new(Owners::unknown(clock.clone()));
        Self { clock, store, history, applications, devices, owners, _dir: dir }
    }

    /// With a time of an hour.
    async fn with_time() -> Self {
        let place = Self::new().await;
        place.set("1h").await;
        place
    }

    async fn set(&self, after: &str) {
        self.applications.set_silent_after(&app(), Some(after.parse().unwrap())).await.unwrap();
    }

    /// Adds a device, or replaces it, with its own time if that is not empty.
    async fn put(&self, dev_id: &str, own: &str) {
        let mut attributes = device("my-app").attributes;
        if !own.is_empty() {
            attributes.insert(SILENT_AFTER.to_owned(), own.to_owned());
        }
        let mut eui = [1; 8];
        eui.iter_mut().zip(dev_id.bytes().rev()).for_each(|(to, from)| *to = from);
        let lorawan = Lorawan { dev_eui: types::DevEui::new(eui), ..Lorawan::default() };
        self.devices.set(Device { dev_id: dev(dev_id), attributes, lorawan, ..device("my-app") }).await.unwrap();
    }

    /// A handler that has just started.
    async fn start(&self, kind: Kind) -> Handler {
        let (clock, output) = (self.clock.clone(), Arc::new(RecordingOutput::default()));
        let history = Some(self.history.clone()).filter(|_| kind != Kind::WithoutHistory);
        let last_heard = Arc::new(LastHeardTimes::new(clock.clone()));
        let uplinks = Uplinks {
            applications: self.applications.clone(),
            devices: self.devices.clone(),
            payloads: Arc::new(Payloads::new(pool(), &Settings::default()).unwrap()),
            output: output.clone(),
            history: history.clone(),
            shows_version: false,
            trials: Default::default(),
            runs: Arc::new(RunCounters::new(clock.clone())),
            last_heard: last_heard.clone(),
        };
        let turns = match kind {
            Kind::AmongOthers => OneAtATime::among_handlers(self.store.clone(), clock.clone(), "silence", None),
            Kind::Alone | Kind::WithoutHistory => OneAtATime::default(),
        };
        let watch = SilenceWatch::new(Environment {
            applications: self.applications.clone(),
            devices: self.devices.clone(),
            store: self.store.clone(),
            last_heard,
            output: output.clone(),
            history,
            owners: self.owners.clone(),
            turns,
            is_shared: kind == Kind::AmongOthers,
            clock: clock.clone(),
            monotonic: clock.monotonic(),
        });
        Handler { clock, uplinks: Arc::new(uplinks), output, watch }
    }

    /// A handler that has run for longer than it waits for what networks have kept, and has looked once.
    async fn handler(&self, kind: Kind) -> Handler {
        let mut handler = self.start(kind).await;
        assert!(handler.look_after(MINUTE).await.is_empty(), "a silence is older than the handler");
        handler
    }

    /// All that is stored of the application.
    async fn records(&self) -> Vec<Entry> {
        self.store.list(&Key::new(&Tag::application("my-app").unwrap(), "").unwrap(), None, 1000).await.unwrap()
    }

    async fn has_alarms(&self) -> bool {
        self.records().await.iter().any(|entry| entry.key.path().contains("alarm"))
    }
}

impl Handler {
    async fn hear(&self, dev_id: &str) {
        let frame = Frame::simulated(app(), dev(dev_id), 1, vec![1], self.clock.now()).unwrap();
        self.uplinks.handle(frame, &Usage::default()).await.unwrap();
    }

    /// Looks once, and returns the devices that are reported as silent.
    async fn look(&mut self) -> Vec<SilentEvent> {
        self.watch.pass(&CancellationToken::new()).await.unwrap();
        let silent = |event: Event| match event {
            Event::Silent(event) => Some(*event),
            _ => None,
        };
        self.output.take().into_iter().filter_map(|message| silent(message.event)).collect()
    }

    /// The same after a time, by their ids.
    async fn look_after(&mut self, time: Duration) -> Vec<String> {
        self.clock.advance(time);
        self.look().await.into_iter().map(|event| event.dev_id.into()).collect()
    }
}

// Conformance: An event when a device has sent nothing for a time, once for each silence
#[tokio::test]
async fn a_silence_is_reported_once_and_the_next_one_again() {
    let place = Place::with_time().await;
    let mut handler = place.handler(Kind::Alone).await;
    for _ in 0..3 {
        assert!(handler.look_after(HOUR - MINUTE).await.is_empty());
        handler.hear("dev").await;
    }
    let last_heard = handler.clock.now();
    assert!(handler.look_after(HOUR - MINUTE).await.is_empty());
    handler.clock.advance(MINUTE);
    let events = handler.look().await;
    let expected = SilentEvent {
        app_id: app(),
        dev_id: dev("dev"),
        hardware_serial: device("my-app").lorawan.dev_eui,
        last_seen: Some(last_heard),
        silent_after_s: "1h".parse().unwrap(),
        time: handler.clock.now(),
    };
    assert_eq!(events, [expected]);
    assert!(handler.look_after(HOUR * 100).await.is_empty());
    handler.hear("dev").await;
    assert!(handler.look().await.is_empty());
    assert_eq!(handler.look_after(HOUR).await, ["dev"]);
}

// Conformance: The same over restarts, jumps of the clock and outages of outputs
#[tokio::test]
async fn an_uplink_writes_nothing_more() {
    let place = Place::with_time().await;
    let mut handler = place.handler(Kind::Alone).await;
    let before = place.records().await;
    handler.clock.advance(MINUTE);
    handler.hear("dev").await;
    assert_eq!(place.records().await, before);
    // The first one in a process has its alarm looked at, the others do not until it is due.
    handler.look().await;
    let before = place.records().await;
    for _ in 0..10 {
        handler.hear("dev").await;
        assert!(handler.look_after(MINUTE).await.is_empty());
    }
    assert_eq!(place.records().await, before);
}

// Conformance: An event when a device has sent nothing for a time, once for each silence
#[tokio::test]
async fn a_device_that_was_never_heard_is_silent_from_its_creation() {
    let place = Place::with_time().await;
    let mut handler = place.handler(Kind::Alone).await;
    handler.hear("dev").await;
    handler.clock.advance(HOUR - MINUTE);
    handler.hear("dev").await;
    place.put("new", "").await;
    let mut template = device("my-app");
    (template.dev_id, template.lorawan.dev_eui) = (dev("template"), Default::default());
    template.lorawan.app_eui = types::AppEui::new([3; 8]);
    place.devices.set(template).await.unwrap();
    handler.look_after(HOUR - MINUTE).await;
    handler.hear("dev").await;
    handler.clock.advance(MINUTE);
    let events = handler.look().await;
    assert_eq!(
        events.iter().map(|event| (event.dev_id.as_str(), event.last_seen)).collect::<Vec<_>>(),
        [("new", None)]
    );
}

#[tokio::test]
async fn devices_that_were_there_before_are_silent_from_when_the_time_is_set() {
    let place = Place::new().await;
    let mut handler = place.handler(Kind::Alone).await;
    for number in 0..300 {
        place.put(&format!("dev-{number}"), "off").await;
    }
    place.put("zz", "").await;
    assert!(handler.look_after(HOUR * 24).await.is_empty() && !place.has_alarms().await);
    place.set("1h").await;
    assert!(handler.look().await.is_empty());
    assert!(handler.look_after(HOUR - MINUTE).await.is_empty());
    assert_eq!(handler.look_after(MINUTE).await, ["dev", "zz"]);
}

// Conformance: The same over restarts, jumps of the clock and outages of outputs
#[tokio::test]
async fn a_restart_repeats_nothing_and_misses_nothing() {
    let place = Place::with_time().await;
    let mut first = place.handler(Kind::Alone).await;
    place.put("other", "").await;
    assert_eq!(first.look_after(HOUR).await, ["dev", "other"]);
    first.hear("other").await;
    assert!(first.look_after(HOUR - MINUTE).await.is_empty());
    first.hear("other").await;
    drop(first);
    // What was heard by the process that has ended counts, and what is due while none runs is not missed.
    let mut second = place.handler(Kind::Alone).await;
    assert!(second.look_after(HOUR - 2 * MINUTE).await.is_empty());
    drop(second);
    place.clock.advance(HOUR);
    let mut third = place.start(Kind::Alone).await;
    assert!(third.look().await.is_empty(), "networks hand over what they have kept");
    assert_eq!(third.look_after(MINUTE).await, ["other"]);
    assert!(third.look_after(MINUTE).await.is_empty());
}

#[tokio::test]
async fn without_history_a_process_only_reports_what_it_can_know() {
    let place = Place::with_time().await;
    let handler = place.handler(Kind::WithoutHistory).await;
    handler.clock.advance(HOUR - 2 * MINUTE);
    handler.hear("dev").await;
    drop(handler);
    // Nobody knows any more that it was heard.
    let mut handler = place.handler(Kind::WithoutHistory).await;
    assert!(handler.look_after(HOUR - 2 * MINUTE).await.is_empty());
    assert_eq!(handler.look_after(MINUTE).await, ["dev"]);
}

#[tokio::test]
async fn a_deleted_device_is_not_reported_and_a_new_one_with_its_id_begins_anew() {
    let place = Place::with_time().await;
    let mut handler = place.handler(Kind::Alone).await;
    place.devices.delete(DevicePath { app_id: &app(), dev_id: &dev("dev") }).await.unwrap();
    handler.clock.advance(HOUR / 2);
    place.put("dev", "").await;
    assert!(handler.look_after(HOUR - MINUTE).await.is_empty());
    assert_eq!(handler.look_after(MINUTE).await, ["dev"]);
    place.devices.delete(DevicePath { app_id: &app(), dev_id: &dev("dev") }).await.unwrap();
    assert!(handler.look_after(HOUR * 2).await.is_empty() && !place.has_alarms().await);
}

// Conformance: An event when a device has sent nothing for a time, once for each silence
#[tokio::test]
async fn another_time_counts_from_when_the_device_was_heard() {
    let place = Place::with_time().await;
    let mut handler = place.handler(Kind::Alone).await;
    for dev_id in ["long", "never", "short"] {
        place.put(dev_id, "").await;
        handler.hear(dev_id).await;
    }
    handler.hear("dev").await;
    handler.look().await;
    place.put("long", "3h").await;
    place.put("never", "off").await;
    place.set("2h").await;
    assert!(handler.look_after(HOUR + MINUTE).await.is_empty());
    assert_eq!(handler.look_after(HOUR - MINUTE).await, ["dev", "short"]);
    assert_eq!(handler.look_after(HOUR).await, ["long"]);
    // A longer time ends a silence without an event, and it is reported again after that.
    place.set("4h").await;
    assert!(handler.look().await.is_empty());
    assert_eq!(handler.look_after(HOUR).await, ["dev", "short"]);
    place.put("never", "").await;
    handler.hear("never").await;
    assert!(handler.look().await.is_empty() && handler.look_after(HOUR * 4 - MINUTE).await.is_empty());
    assert_eq!(handler.look_after(MINUTE).await, ["never"]);
    place.applications.set_silent_after(&app(), None).await.unwrap();
    handler.hear("dev").await;
    assert!(handler.look_after(HOUR * 100).await.is_empty() && !place.has_alarms().await);
}

// Conformance: The same over restarts, jumps of the clock and outages of outputs
#[tokio::test]
async fn no_jump_of_the_clock_makes_devices_silent() {
    let place = Place::with_time().await;
    let mut handler = place.handler(Kind::Alone).await;
    handler.hear("dev").await;
    handler.look().await;
    handler.clock.jump(HOUR * 24);
    assert!(handler.look().await.is_empty());
    assert!(handler.look_after(HOUR - MINUTE).await.is_empty());
    handler.hear("dev").await;
    handler.clock.set_back(HOUR * 24);
    assert!(handler.look().await.is_empty() && handler.look().await.is_empty());
    // Nothing that lies in the future holds an event up.
    assert!(handler.look_after(HOUR - MINUTE).await.is_empty());
    assert_eq!(handler.look_after(MINUTE).await, ["dev"]);
}

// Conformance: The same over restarts, jumps of the clock and outages of outputs
#[tokio::test]
async fn an_event_that_cannot_be_published_is_published_later() {
    let place = Place::with_time().await;
    let mut handler = place.handler(Kind::Alone).await;
    handler.output.fail(true);
    assert_eq!(handler.look_after(HOUR).await, ["dev"]);
    assert!(handler.look_after(MINUTE / 2).await.is_empty(), "other outputs may have taken it");
    handler.output.fail(false);
    assert_eq!(handler.look_after(MINUTE / 2).await, ["dev"]);
    assert!(handler.look_after(MINUTE).await.is_empty());
}
