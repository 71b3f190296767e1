//! Downlinks on their way from the queues of devices to networks.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::BoxFuture;
use handler::{
    Settings,
    application::Applications,
    device::Devices,
    downlink::{DownlinkReceiver, Downlinks, Network, Networks, Outgoing},
    network::{NetworkEvents, Registration},
    output::Event,
    payload::Payloads,
    uplink::Uplinks,
};
use mqtt::{DownlinkSink, PublishedDownlink};
use server::system::SystemClock;
use store::{Store, StoreClock};
use testing::{FailingStore, ManualClock};
use tokio::sync::{Notify, Semaphore};
use types::{
    DevEui, DeviceIds, DownlinkOutcome, DownlinkReport, Kind, Kinded, NetworkDevice, NetworkDownlink, NetworkEvent,
    NetworkRefusal,
};

use crate::{
    harness::sealer,
    recording_output::RecordingOutput,
    records::{device, id, pool},
};

/// Long enough for anything that happens at all.
const PATIENCE: Duration = Duration::from_secs(30);

/// A network that keeps what it takes: the port, and whether it replaces others.
struct TestNetwork {
    taken: Mutex<Vec<(u8, bool)>>,
    /// Each downlink needs a permit, and waits for it.
    permits: Semaphore,
    /// Refuses with this kind until it is taken.
    refusal: Mutex<Option<Kind>>,
    changed: Notify,
}

impl TestNetwork {
    fn new(permits: usize) -> Arc<Self> {
        let (taken, refusal, changed) = Default::default();
        Arc::new(Self { taken, permits: Semaphore::new(permits), refusal, changed })
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

impl Network for TestNetwork {
    fn send(&self, _dev_eui: DevEui, downlink: NetworkDownlink) -> BoxFuture<'_, Result<String, NetworkRefusal>> {
        Box::pin(async move {
            self.changed.notify_one();
            self.permits.acquire().await.unwrap().forget();
            if let Some(kind) = self.refusal.lock().unwrap().take() {
                return Err(NetworkRefusal::new(kind, "later"));
            }
            let mut taken = self.taken.lock().unwrap();
            taken.push((downlink.port, downlink.replaces_others));
            Ok(taken.len().to_string())
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
        let store: Arc<dyn Store> = Arc::new(FailingStore::new(StoreClock::new(|| 0)));
        let sealer = sealer(store.as_ref()).await;
        let applications = Applications::new(store.clone(), sealer.clone());
        let devices = Devices::new(store.clone(), sealer, ManualClock::new());
        let output = Arc::new(RecordingOutput::default());
        let outgoing = Arc::new(Outgoing::new(store.clone(), output.clone(), Arc::new(SystemClock)));
        let mut connected = Networks::new();
        for (app_id, network) in networks {
            applications.register(&id(app_id)).await.unwrap();
            devices.set(device(app_id)).await.unwrap();
            let network: Arc<dyn Network> = (*network).clone();
            connected.insert(id(app_id), network);
        }
        outgoing.start(connected);
        let payloads = Arc::new(Payloads::new(pool(), &Settings::default()).unwrap());
        let uplinks = Uplinks {
            applications: applications.clone(),
            devices: devices.clone(),
            payloads: payloads.clone(),
            output: output.clone(),
        };
        let events = NetworkEvents {
            devices: devices.clone(),
            uplinks: Arc::new(uplinks),
            outgoing: outgoing.clone(),
            output: output.clone(),
            traffic: Arc::default(),
            clock: Arc::new(SystemClock),
        };
        let receiver = DownlinkReceiver::new(Arc::new(Downlinks {
            applications,
            devices: devices.clone(),
            payloads,
            outgoing: outgoing.clone(),
            output: output.clone(),
            store: store.clone(),
            traffic: Arc::default(),
            clock: Arc::new(SystemClock),
        }));
        Self { receiver, devices, store, outgoing, output, events }
    }

    async fn send(&self, app_id: &str, dev_id: &str, port: u8, schedule: &str) {
        let body = format!(r#"{{"port":{port},"payload_raw":"AQ==","schedule":"{schedule}"}}"#);
        self.publish(app_id, dev_id, body).await;
    }

    async fn publish(&self, app_id: &str, dev_id: &str, body: String) {
        let dev_id = dev_id.parse().unwrap();
        self.receiver.accept(PublishedDownlink { app_id: id(app_id), dev_id, body: body.into() }).await.unwrap();
    }

    /// The network reports that the device of `app-one` did not acknowledge a downlink.
    async fn not_acknowledged(&self, id_there: usize) {
        let registration = Registration { app_id: id("app-one"), is_automatic: false, ids: DeviceIds::Eui };
        let dev_eui = device("app-one").lorawan.dev_eui;
        let device =
            NetworkDevice { dev_eui, app_eui: Some(device("app-one").lorawan.app_eui), ..NetworkDevice::default() };
        let (id, outcome) = (id_there.to_string(), DownlinkOutcome::NotAcknowledged);
        let report = NetworkEvent::Downlink(DownlinkReport { device, id, outcome });
        // It is refused while the id of the downlink is not stored yet.
        while let Err(error) = self.events.handle(&registration, report.clone()).await {
            assert_eq!(error.kind(), Kind::Conflict, "{error}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// What was published, without what was scheduled.
    fn published(&self) -> Vec<Event> {
        let published = self.output.take().into_iter().map(|message| message.event);
        published.filter(|event| !matches!(event, Event::DownlinkScheduled(_))).collect()
    }
}

#[tokio::test]
async fn the_first_downlink_to_leave_replaces_what_the_network_has() {
    let network = TestNetwork::new(9);
    *network.refusal.lock().unwrap() = Some(Kind::Unavailable);
    let fixture = Fixture::start(&[("app-one", &network)]).await;
    fixture.send("app-one", "dev", 1, "replace").await;
    network.wait_until_asked().await;
    fixture.outgoing.stop().await;
    fixture.send("app-one", "dev", 2, "first").await;
    fixture.send("app-one", "dev", 3, "last").await;
    // As after a restart, because the next search takes a while.
    let again = Arc::new(Outgoing::new(fixture.store.clone(), fixture.output.clone(), Arc::new(SystemClock)));
    again.start(Networks::from([(id("app-one"), network.clone() as Arc<dyn Network>)]));
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
    assert!(event.error.as_ref().is_some_and(|error| error.contains("8 times")), "{event:?}");
    assert!(event.message.as_ref().is_some_and(|message| message.confirmed && message.port == 5), "{event:?}");
    fixture.outgoing.stop().await;
    assert_eq!(network.taken.lock().unwrap().len(), 8);
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
