//! What networks report is confirmed to them when the application's events about it are kept.

use std::sync::Arc;

use handler::{
    Settings,
    application::Applications,
    device::Devices,
    downlink::Outgoing,
    network::{NetworkEvents, Registration},
    output::Event,
    payload::Payloads,
    uplink::Uplinks,
};
use store::{Embedded, Store, StoreClock};
use testing::ManualClock;
use types::{DevAddr, DeviceIds, Kind, Kinded, NetworkDevice, NetworkEvent, NetworkJoin};

use crate::{
    harness::sealer,
    recording_output::RecordingOutput,
    records::{id, pool},
};

/// What networks report about `app-one`, whose devices register when they are first heard.
struct Fixture {
    events: NetworkEvents,
    output: Arc<RecordingOutput>,
    registration: Registration,
}

impl Fixture {
    async fn new() -> Self {
        let store: Arc<dyn Store> = Arc::new(Embedded::in_memory(StoreClock::new(|| 0)).unwrap());
        let sealer = sealer(store.as_ref()).await;
        let clock = ManualClock::new();
        let applications = Applications::new(store.clone(), sealer.clone());
        let devices = Devices::new(store.clone(), sealer, clock.clone());
        applications.register(&id("app-one")).await.unwrap();
        let output = Arc::new(RecordingOutput::default());
        let payloads = Arc::new(Payloads::new(pool(), &Settings::default()).unwrap());
        let uplinks = Uplinks { applications, devices: devices.clone(), payloads, output: output.clone() };
        let outgoing = Arc::new(Outgoing::new(store, output.clone()));
        let (uplinks, traffic) = (Arc::new(uplinks), Arc::default());
        let events = NetworkEvents { devices, uplinks, outgoing, output: output.clone(), traffic, clock };
        let registration = Registration { app_id: id("app-one"), is_automatic: true, ids: DeviceIds::Eui };
        Self { events, output, registration }
    }

    async fn report(&self, event: NetworkEvent) -> Result<(), Kind> {
        self.events.handle(&self.registration, event).await.map_err(|error| error.kind())
    }

    /// What was published, without the creation of devices.
    fn published(&self) -> Vec<Event> {
        let published = self.output.take().into_iter().map(|message| message.event);
        published.filter(|event| !matches!(event, Event::Create(_))).collect()
    }
}

#[tokio::test]
async fn a_join_is_reported_again_until_its_event_is_kept() {
    let fixture = Fixture::new().await;
    let join = NetworkEvent::Join(NetworkJoin {
        device: NetworkDevice { dev_eui: "A300000000000001".parse().unwrap(), ..NetworkDevice::default() },
        dev_addr: DevAddr::default(),
        received: None,
    });
    fixture.output.fail(true);
    assert_eq!(fixture.report(join.clone()).await, Err(Kind::Unavailable));
    fixture.output.fail(false);
    fixture.published();
    assert_eq!(fixture.report(join).await, Ok(()));
    assert!(matches!(fixture.published()[..], [Event::Activation(_)]));
}
