//! Reports of networks are confirmed to them when the application's events about them are kept.

use std::sync::Arc;

use handler::{
    Settings,
    application::{Application, Applications, JoinKeyChange, VersionOrigin},
    device::Devices,
    downlink::Outgoing,
    network::{NetworkEvents, Registration},
    output::Event,
    payload::Payloads,
    uplink::{LastHeardTimes, RunCounters, Uplinks},
};
use history::Outcome;
use runtime::Sources;
use store::{Embedded, Store, StoreClock};
use testing::ManualClock;
use types::{AppEui, DevAddr, DeviceIds, Kind, Kinded, NetworkDevice, NetworkEvent, NetworkJoin, NetworkUplink};

use crate::{
    harness::{recording_output::RecordingOutput, sealer},
    records::{device, id, pool},
};

/// Reports of a network about `app-one`, whose devices register when they are first heard.
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
        let uplinks = Uplinks {
            applications,
            devices: devices.clone(),
            payloads,
            output: output.clone(),
            history: None,
            shows_version: false,
            trials: Default::default(),
            runs: Arc::new(RunCounters::new(clock.clone())),
            last_heard: Arc::new(LastHeardTimes::new(clock.clone())),
        };
        let outgoing = Arc::new(Outgoing::new(store, output.clone(), clock.clone()));
        let (uplinks, traffic) = (Arc::new(uplinks), Arc::default());
        let events = NetworkEvents { devices, uplinks, outgoing, output: output.clone(), traffic, clock };
        let registration = Registration { app_id: id("app-one"), is_automatic: true, ids: DeviceIds::Eui };
        Self { events, output, registration }
    }

    async fn report(&self, event: NetworkEvent) -> Result<(), Kind> {
        self.events.handle(&self.registration, event).await.map(drop).map_err(|error| error.kind())
    }

    /// Takes the published events, without the creation of devices.
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

#[tokio::test]
async fn who_brings_an_uplink_learns_what_was_made_of_it() {
    let fixture = Fixture::new().await;
    let device = NetworkDevice { dev_eui: "A300000000000001".parse().unwrap(), ..NetworkDevice::default() };
    let made = async |decoder: &str, validator: &str| {
        let sources = Sources { decoder: decoder.to_owned(), validator: validator.to_owned(), ..Sources::default() };
        let application = Application::with_functions(id("app-one"), "custom".to_owned(), sources);
        let (change, origin) = (JoinKeyChange::Replace, VersionOrigin::default());
        fixture.events.uplinks.applications.set(application, change, origin).await.unwrap();
        let uplink = NetworkUplink { device: device.clone(), port: 1, payload: vec![1], ..NetworkUplink::default() };
        fixture.events.handle(&fixture.registration, NetworkEvent::Uplink(Box::new(uplink))).await.unwrap()
    };
    let good = "function Decoder(bytes) { return { n: bytes[0] }; }";
    assert_eq!(made(good, "").await, Some(Outcome::Decoded));
    assert_eq!(made("function Decoder() { throw 1; }", "").await, Some(Outcome::Failed));
    assert_eq!(made(good, "function Validator() { return false; }").await, Some(Outcome::Invalid));
    assert_eq!(made("", "").await, Some(Outcome::NotConverted));
}

/// A join of the device with this DevEUI.
fn join(dev_eui: &str, app_eui: Option<&str>, is_provisional: bool) -> NetworkEvent {
    let app_eui = app_eui.map(|app_eui| app_eui.parse().unwrap());
    let device =
        NetworkDevice { dev_eui: dev_eui.parse().unwrap(), app_eui, is_provisional, ..NetworkDevice::default() };
    NetworkEvent::Join(NetworkJoin { device, ..NetworkJoin::default() })
}

#[tokio::test]
async fn a_device_is_found_by_its_dev_eui_while_its_join_eui_is_not_known() {
    const DEV_EUI: &str = "A300000000000001";
    const ZERO: &str = "0000000000000000";
    let mut fixture = Fixture::new().await;
    // Nothing is registered of which the network may say more later.
    assert_eq!(fixture.report(join(DEV_EUI, None, true)).await, Err(Kind::Unavailable));
    fixture.registration.is_automatic = false;
    let register = async |number: u8| {
        let mut device = device("app-one");
        device.dev_id = format!("dev-{number}").parse().unwrap();
        device.lorawan.dev_eui = DEV_EUI.parse().unwrap();
        device.lorawan.app_eui = AppEui::new([number; 8]);
        fixture.events.devices.set(device).await.unwrap();
    };
    register(1).await;
    for (app_eui, expected) in [(None, Ok(())), (Some("0101010101010101"), Ok(())), (Some(ZERO), Err(Kind::NotFound))] {
        assert_eq!(fixture.report(join(DEV_EUI, app_eui, false)).await, expected, "{app_eui:?}");
    }
    assert_eq!(fixture.report(join("A300000000000002", None, false)).await, Err(Kind::NotFound));
    // Of two, nobody can say which one it is.
    register(2).await;
    for (app_eui, is_provisional, expected) in [
        (None, false, Err(Kind::NotFound)),
        (None, true, Err(Kind::Unavailable)),
        (Some("0202020202020202"), false, Ok(())),
    ] {
        assert_eq!(fixture.report(join(DEV_EUI, app_eui, is_provisional)).await, expected, "{app_eui:?}");
    }
}
