//! Downlinks on their way from the queues of devices to networks.

mod reports;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::BoxFuture;
use handler::{
    Error, Settings,
    application::Applications,
    device::Devices,
    downlink::{DownlinkNetwork, DownlinkReceiver, Downlinks, Networks, Outgoing},
    network::{NetworkEvents, Registration},
    output::Event,
    payload::Payloads,
    uplink::{LastHeardTimes, RunCounters, Uplinks},
};
use mqtt::{DownlinkRefusal, DownlinkSink, Offer, PublishedDownlink};
use server::{
    ledger::{BudgetSettings, Ledger},
    system::SystemClock,
};
use store::{Store, StoreClock};
use testing::{FailingStore, ManualClock};
use tokio::sync::{Notify, Semaphore};
use types::{
    DevEui, DeviceIds, DownlinkOutcome, DownlinkReport, Kind, Kinded, NetworkDevice, NetworkDownlink, NetworkEvent,
    NetworkRefusal,
};

use crate::{
    harness::{recording_output::RecordingOutput, sealer},
    records::{device, id, pool},
};

/// Long enough for anything that happens at all.
const PATIENCE: Duration = Duration::from_secs(60);

/// A network that keeps what it takes: the port, and whether it replaces others.
struct TestNetwork {
    taken: Mutex<Vec<(u8, bool)>>,
    /// The ids that it was asked to use, which it does only if it answers with them.
    ids: Mutex<Vec<String>>,
    answers_with_our_ids: bool,
    /// Each downlink needs a permit, and waits for it.
    permits: Semaphore,
    /// Refuses as often, with these kinds.
    refusals: Mutex<Vec<Kind>>,
    changed: Notify,
}

impl TestNetwork {
    fn new(permits: usize) -> Arc<Self> {
        Arc::new(Self::with_permits(permits))
    }

    fn with_permits(permits: usize) -> Self {
        let (taken, ids, refusals, changed) = Default::default();
        Self { taken, ids, answers_with_our_ids: false, permits: Semaphore::new(permits), refusals, changed }
    }

    async fn wait_until_asked(&self) {
        tokio::time::timeout(PATIENCE, self.changed.notified()).await.expect("a downlink comes");
    }

    /// Waits until downlinks of these ports have come.
    async fn wait_for(&self, ports: &[u8]) -> Vec<bool> {
        let found = async {
            loop {
                let taken = self.taken.lock().unwrap().clone();
                if taken.iter().map(|(port, _)| *port).eq(ports.iter().copied()) {
                    return taken.into_iter().map(|(_, replaces_others)| replaces_others).collect();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        found.unwrap_or_else(|_| panic!("{:?} and not {ports:?}", self.taken.lock().unwrap()))
    }
}

impl DownlinkNetwork for TestNetwork {
    fn send(&self, _dev_eui: DevEui, downlink: NetworkDownlink) -> BoxFuture<'_, Result<String, NetworkRefusal>> {
        Box::pin(async move {
            self.ids.lock().unwrap().push(downlink.id.clone());
            self.changed.notify_one();
            self.permits.acquire().await.unwrap().forget();
            if let Some(kind) = self.refusals.lock().unwrap().pop() {
                return Err(NetworkRefusal::new(kind, "later"));
            }
            let mut taken = self.taken.lock().unwrap();
            taken.push((downlink.port, downlink.replaces_others));
            Ok(if self.answers_with_our_ids { downlink.id } else { taken.len().to_string() })
        })
    }
}

struct Fixture {
    receiver: DownlinkReceiver,
    devices: Devices,
    store: Arc<dyn Store>,
    outgoing: Arc<Outgoing>,
    output: Arc<RecordingOutput>,
    events: NetworkEvents,
}

impl Fixture {
    /// Applications with the device `dev` and a network each.
    async fn start(networks: &[(&str, &Arc<TestNetwork>)]) -> Self {
        Self::on(Arc::new(FailingStore::new(StoreClock::new(|| 0))), networks).await
    }

    /// The same in a store that others use, too.
    async fn on(store: Arc<dyn Store>, networks: &[(&str, &Arc<TestNetwork>)]) -> Self {
        let sealer = sealer(store.as_ref()).await;
        let applications = Applications::new(store.clone(), sealer.clone());
        let devices = Devices::new(store.clone(), sealer, ManualClock::new());
        let output = Arc::new(RecordingOutput::default());
        let outgoing = Arc::new(Outgoing::new(store.clone(), output.clone(), Arc::new(SystemClock)));
        let mut connected = Networks::new();
        for (app_id, network) in networks {
            if applications.register(&id(app_id)).await.is_ok() {
                devices.set(device(app_id)).await.unwrap();
            }
            let network: Arc<dyn DownlinkNetwork> = (*network).clone();
            connected.insert(id(app_id), network);
        }
        outgoing.start(connected);
        // Its first search is over before there is anything to find.
        tokio::task::yield_now().await;
        store.check().await.unwrap();
        let payloads = Arc::new(Payloads::new(pool(), &Settings::default()).unwrap());
        let uplinks = Uplinks {
            applications: applications.clone(),
            devices: devices.clone(),
            payloads: payloads.clone(),
            output: output.clone(),
            history: None,
            shows_version: false,
            trials: Default::default(),
            runs: Arc::new(RunCounters::new(Arc::new(SystemClock))),
            last_heard: Arc::new(LastHeardTimes::new(Arc::new(SystemClock))),
        };
        let events = NetworkEvents {
            devices: devices.clone(),
            uplinks: Arc::new(uplinks),
            outgoing: outgoing.clone(),
            output: output.clone(),
            traffic: Arc::default(),
            clock: Arc::new(SystemClock),
        };
        let downlinks = Arc::new(Downlinks {
            applications,
            devices: devices.clone(),
            payloads,
            outgoing: outgoing.clone(),
            output: output.clone(),
            traffic: Arc::default(),
            clock: Arc::new(SystemClock),
        });
        let receiver = DownlinkReceiver::new(downlinks, &Ledger::new(&BudgetSettings::default()));
        Self { receiver, devices, store, outgoing, output, events }
    }

    async fn send(&self, app_id: &str, dev_id: &str, port: u8, schedule: &str) {
        let body = format!(r#"{{"port":{port},"payload_raw":"AQ==","schedule":"{schedule}"}}"#);
        self.publish(app_id, dev_id, body).await;
    }

    async fn publish(&self, app_id: &str, dev_id: &str, body: String) {
        let dev_id = dev_id.parse().unwrap();
        let downlink =
            PublishedDownlink { app_id: id(app_id), dev_id, body: body.into(), is_late: false, offer: Offer::Once };
        self.receiver.accept(downlink, Box::new(|| ())).await.unwrap();
    }

    /// The network reports that the device of `app-one` did not acknowledge a downlink.
    async fn not_acknowledged(&self, id_there: usize) {
        // It is refused while the id of the downlink is not stored yet.
        while let Err(error) = self.report(id_there, DownlinkOutcome::NotAcknowledged).await {
            assert_eq!(error.kind(), Kind::Conflict, "{error}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The network reports about a downlink for the device of `app-one`.
    async fn report(&self, id_there: impl ToString, outcome: DownlinkOutcome) -> Result<(), Error> {
        let registration = Registration { app_id: id("app-one"), is_automatic: false, ids: DeviceIds::Eui };
        let dev_eui = device("app-one").lorawan.dev_eui;
        let device =
            NetworkDevice { dev_eui, app_eui: Some(device("app-one").lorawan.app_eui), ..NetworkDevice::default() };
        let report = DownlinkReport { device, id: id_there.to_string(), outcome };
        self.events.handle(&registration, NetworkEvent::Downlink(report)).await.map(drop)
    }

    /// Starts again, as after a restart, because the next search takes a while.
    async fn restart(&mut self, network: &Arc<TestNetwork>) {
        self.outgoing.stop().await;
        let outgoing = Arc::new(Outgoing::new(self.store.clone(), self.output.clone(), Arc::new(SystemClock)));
        outgoing.start(Networks::from([(id("app-one"), network.clone() as Arc<dyn DownlinkNetwork>)]));
        self.outgoing = outgoing.clone();
        self.events.outgoing = outgoing;
    }

    /// Takes the published events, without those of scheduling.
    fn published(&self) -> Vec<Event> {
        let published = self.output.take().into_iter().map(|message| message.event);
        published.filter(|event| !matches!(event, Event::DownlinkScheduled(_))).collect()
    }
}

#[tokio::test]
async fn the_first_downlink_to_leave_replaces_what_the_network_has() {
    let network = TestNetwork::new(99);
    // Whoever looks for downlinks as one arrives may find it twice.
    *network.refusals.lock().unwrap() = vec![Kind::Unavailable; 9];
    let fixture = Fixture::start(&[("app-one", &network)]).await;
    fixture.send("app-one", "dev", 1, "replace").await;
    network.wait_until_asked().await;
    fixture.outgoing.stop().await;
    network.refusals.lock().unwrap().clear();
    fixture.send("app-one", "dev", 2, "first").await;
    fixture.send("app-one", "dev", 3, "last").await;
    // As after a restart, because the next search takes a while.
    let again = Arc::new(Outgoing::new(fixture.store.clone(), fixture.output.clone(), Arc::new(SystemClock)));
    again.start(Networks::from([(id("app-one"), network.clone() as Arc<dyn DownlinkNetwork>)]));
    assert_eq!(network.wait_for(&[2, 1, 3]).await, [true, false, false]);
    again.stop().await;
}

#[tokio::test]
async fn a_downlink_that_came_first_does_not_replace_the_one_that_is_leaving() {
    let network = TestNetwork::new(0);
    let fixture = Fixture::start(&[("app-one", &network)]).await;
    fixture.send("app-one", "dev", 1, "replace").await;
    network.wait_until_asked().await;
    fixture.send("app-one", "dev", 2, "first").await;
    network.permits.add_permits(9);
    assert_eq!(network.wait_for(&[1, 2]).await, [true, false]);
    fixture.outgoing.stop().await;
}

// Conformance: A confirmed downlink is sent up to eight times, then `down/errors`
#[tokio::test]
async fn a_downlink_that_is_not_acknowledged_is_sent_eight_times_and_then_reported() {
    let network = TestNetwork::new(99);
    let fixture = Fixture::start(&[("app-one", &network)]).await;
    fixture.publish("app-one", "dev", r#"{"port":5,"payload_raw":"AQ==","confirmed":true}"#.to_owned()).await;
    for attempts in 1..=8 {
        let replaces_others = network.wait_for(&vec![5; attempts]).await;
        assert_eq!(replaces_others.last(), Some(&(attempts == 1)), "what was sent since must stay");
        assert!(fixture.published().is_empty());
        fixture.not_acknowledged(attempts).await;
    }
    let [Event::DownlinkError(event)] = &fixture.published()[..] else { panic!("one event on `down/errors`") };
    assert!(event.error.as_ref().is_some_and(|error| error.contains("did not acknowledge")), "{event:?}");
    assert!(event.message.as_ref().is_some_and(|message| message.confirmed && message.port == 5), "{event:?}");
    fixture.outgoing.stop().await;
    assert_eq!(network.taken.lock().unwrap().len(), 8);
}

#[tokio::test]
async fn a_downlink_that_was_replaced_is_not_sent_again() {
    let network = TestNetwork::new(99);
    let fixture = Fixture::start(&[("app-one", &network)]).await;
    fixture.publish("app-one", "dev", r#"{"port":5,"payload_raw":"AQ==","confirmed":true}"#.to_owned()).await;
    network.wait_for(&[5]).await;
    while fixture
        .report(1, DownlinkOutcome::Sent { gateway_id: String::new(), config: Default::default() })
        .await
        .is_err()
    {}
    fixture.published();
    // The one that replaces it has not left yet.
    network.wait_until_asked().await;
    *network.refusals.lock().unwrap() = vec![Kind::Unavailable];
    fixture.send("app-one", "dev", 6, "replace").await;
    network.wait_until_asked().await;
    fixture.not_acknowledged(1).await;
    assert!(matches!(fixture.published()[..], [Event::DownlinkError(_)]));
    fixture.outgoing.stop().await;
    // The other one may have left by now.
    let taken = network.taken.lock().unwrap();
    assert_eq!(taken.iter().filter(|(port, _)| *port == 5).count(), 1);
}

fn sent() -> DownlinkOutcome {
    DownlinkOutcome::Sent { gateway_id: String::new(), config: Default::default() }
}

#[tokio::test]
async fn a_network_that_never_answers_in_time_gets_three_copies_with_one_id() {
    let network = TestNetwork::new(99);
    let refuse = || *network.refusals.lock().unwrap() = vec![Kind::Timeout];
    refuse();
    let mut fixture = Fixture::start(&[("app-one", &network)]).await;
    fixture.send("app-one", "dev", 5, "last").await;
    network.wait_until_asked().await;
    for _ in 1..3 {
        fixture.outgoing.stop().await;
        assert!(fixture.published().is_empty());
        refuse();
        fixture.restart(&network).await;
        network.wait_until_asked().await;
    }
    fixture.outgoing.stop().await;
    let [Event::DownlinkError(event)] = &fixture.published()[..] else { panic!("one event on `down/errors`") };
    assert!(event.error.as_ref().is_some_and(|error| error.contains("may be sent nevertheless")), "{event:?}");
    let ids = network.ids.lock().unwrap().clone();
    assert!(ids.len() == 3 && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    // The network had taken it.
    fixture.report(&ids[0], sent()).await.unwrap();
    assert!(matches!(fixture.published()[..], [Event::DownlinkSent(_)]));
    fixture.restart(&network).await;
    fixture.send("app-one", "dev", 6, "last").await;
    network.wait_for(&[6]).await;
    fixture.outgoing.stop().await;
}

#[tokio::test]
async fn one_of_two_processes_hands_a_downlink_over() {
    let (slow, other) = (TestNetwork::new(0), TestNetwork::new(9));
    let first = Fixture::start(&[("app-one", &slow)]).await;
    first.send("app-one", "dev", 1, "last").await;
    slow.wait_until_asked().await;
    let second = Fixture::on(first.store.clone(), &[("app-one", &other)]).await;
    let mut another = device("app-one");
    another.dev_id = "dev-b".parse().unwrap();
    another.lorawan.dev_eui = DevEui::new([7; 8]);
    second.devices.set(another).await.unwrap();
    second.send("app-one", "dev", 2, "last").await;
    second.send("app-one", "dev-b", 9, "last").await;
    other.wait_for(&[9]).await;
    slow.permits.add_permits(9);
    slow.wait_for(&[1, 2]).await;
    for fixture in [&first, &second] {
        fixture.outgoing.stop().await;
    }
    assert_eq!(other.taken.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_network_that_hangs_holds_up_no_other() {
    let (hanging, other) = (TestNetwork::new(0), TestNetwork::new(9));
    let fixture = Fixture::start(&[("app-one", &hanging), ("app-two", &other)]).await;
    for number in 0_u64..200 {
        let mut device = device("app-one");
        device.dev_id = format!("dev-{number}").parse().unwrap();
        device.lorawan.dev_eui = DevEui::new((number + 100).to_be_bytes());
        fixture.devices.set(device).await.unwrap();
        fixture.send("app-one", &format!("dev-{number}"), 1, "last").await;
    }
    fixture.send("app-two", "dev", 7, "last").await;
    other.wait_for(&[7]).await;
    hanging.permits.add_permits(1000);
    fixture.outgoing.stop().await;
}

#[tokio::test]
async fn a_downlink_is_refused_when_the_event_about_it_is_kept() {
    let network = TestNetwork::new(9);
    let fixture = Fixture::start(&[("app-one", &network)]).await;
    let accept = async |dev_id: &str, body: &'static str| {
        let (app_id, dev_id) = (id("app-one"), dev_id.parse().unwrap());
        let downlink = PublishedDownlink { app_id, dev_id, body: body.into(), is_late: false, offer: Offer::Once };
        fixture.receiver.accept(downlink, Box::new(|| ())).await
    };
    fixture.output.fail(true);
    assert_eq!(accept("dev", "[]").await, Err(DownlinkRefusal::Unavailable));
    fixture.output.fail(false);
    assert_eq!(accept("dev", "[]").await, Err(DownlinkRefusal::Invalid));
    assert_eq!(accept("nobody", r#"{"payload_raw":"AQ=="}"#).await, Err(DownlinkRefusal::UnknownDevice));
}
