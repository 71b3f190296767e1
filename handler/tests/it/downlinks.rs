//! Downlinks that applications publish: the queues of their devices, and the events that report the outcome.

mod outgoing;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use handler::{
    Settings,
    application::{Application, Applications, JoinKeyChange, VersionOrigin},
    device::Devices,
    downlink::{DownlinkReceiver, Downlinks, Outgoing},
    output::mqtt::MqttOutput,
    payload::Payloads,
};
use mqtt::{DownlinkRefusal, DownlinkSink, Offer, PublishedDownlink};
use runtime::Sources;
use serde_json::{Value, json};
use server::{
    ledger::{BudgetSettings, Ledger},
    system::SystemClock,
};
use store::{Batch, Commit, Key, Store, StoreClock, Tag};
use testing::{FailingStore, ManualClock};
use types::DevicePath;

use crate::{
    harness::{APPS, Harness, mqtt_client::MqttClient, router, sealer},
    records::{device, id, pool},
};

const ENCODER: &str = "function Encoder(object, port) { \
    if (object.bad) { throw new Error('no such lamp'); } return [object.led, port]; }";

/// A handler that takes downlinks: `app-one` has an encoder, `app-two` none, each has the device `dev`.
struct Fixture {
    harness: Harness,
    applications: Applications,
    devices: Devices,
    store: Arc<dyn Store>,
    failing: Arc<FailingStore>,
    receiver: Arc<DownlinkReceiver>,
}

impl Fixture {
    async fn new() -> Self {
        let router = router();
        let failing = Arc::new(FailingStore::new(StoreClock::new(|| 0)));
        let store: Arc<dyn Store> = failing.clone();
        let sealer = sealer(store.as_ref()).await;
        let (applications, devices) =
            (Applications::new(store.clone(), sealer.clone()), Devices::new(store.clone(), sealer, ManualClock::new()));
        for app_id in APPS {
            applications.register(&id(app_id)).await.unwrap();
            devices.set(device(app_id)).await.unwrap();
        }
        let output = Arc::new(MqttOutput::new(router.clone(), &Default::default()));
        let downlinks = Arc::new(Downlinks {
            applications: applications.clone(),
            devices: devices.clone(),
            payloads: Arc::new(Payloads::new(pool(), &Settings::default()).unwrap()),
            outgoing: Arc::new(Outgoing::new(store.clone(), output.clone(), Arc::new(SystemClock))),
            output,
            traffic: Arc::default(),
            clock: Arc::new(SystemClock),
        });
        let receiver = Arc::new(DownlinkReceiver::new(downlinks, &Ledger::new(&BudgetSettings::default())));
        let harness = Harness::start_with(router, receiver.clone()).await;
        let fixture = Self { harness, applications, devices, store, failing, receiver };
        fixture.save("app-one", "custom", ENCODER).await;
        fixture
    }

    async fn save(&self, app_id: &str, format: &str, encoder: &str) {
        let sources = Sources { encoder: encoder.to_owned(), ..Sources::default() };
        let application = Application::with_functions(id(app_id), format.to_owned(), sources);
        self.applications.set(application, JoinKeyChange::Replace, VersionOrigin::default()).await.unwrap();
    }

    /// A client that is subscribed to the events of an application.
    async fn client(&self, app_id: &str) -> MqttClient {
        MqttClient::connect(self.harness.broker.address(), app_id, "+/devices/+/events/#").await
    }

    /// Offers a downlink for the device of `app-one`.
    async fn accept(&self, body: &'static [u8], offer: Offer) -> Result<(), DownlinkRefusal> {
        let (app_id, dev_id) = (id("app-one"), "dev".parse().unwrap());
        let downlink = PublishedDownlink { app_id, dev_id, body: body.into(), is_late: false, offer };
        self.receiver.accept(downlink, Box::new(|| ())).await
    }

    /// The queue of the device: each downlink's port, whether it is confirmed, and its bytes.
    async fn queue(&self, app_id: &str) -> Vec<(u8, bool, Vec<u8>)> {
        let record = self.store.get(&[queue_key(app_id)]).await.unwrap().remove(0);
        let queue: Vec<types::Downlink> =
            record.map(|record| serde_json::from_slice(&record.value).unwrap()).unwrap_or_default();
        let shown = |downlink: types::Downlink| {
            assert!(downlink.payload_fields.is_none(), "{downlink:?}");
            (downlink.port, downlink.confirmed, downlink.payload_raw.unwrap())
        };
        queue.into_iter().map(shown).collect()
    }
}

fn queue_key(app_id: &str) -> Key {
    Key::new(&Tag::application(app_id).unwrap(), "handler/downlinks/dev").unwrap()
}

/// Publishes a downlink, and returns the resulting event with its topic below the application.
async fn event(client: &mut MqttClient, app_id: &str, dev_id: &str, body: &str) -> (String, Value) {
    client.publish(&format!("{app_id}/devices/{dev_id}/down"), body).await;
    let (topic, event) = client.next().await;
    let topic = topic.strip_prefix(&format!("{app_id}/devices/")).unwrap().to_owned();
    (topic, serde_json::from_str(&event).unwrap())
}

#[tokio::test]
async fn keeps_the_order_of_a_burst_for_one_device() {
    let fixture = Fixture::new().await;
    let mut client = fixture.client("app-one").await;
    // One application must not have more in progress.
    for number in 1..=16 {
        let body = format!(r#"{{"port":{number},"payload_raw":"AQ==","schedule":"last"}}"#);
        client.publish("app-one/devices/dev/down", &body).await;
    }
    for number in 1..=16 {
        let event: Value = serde_json::from_str(&client.next().await.1).unwrap();
        assert_eq!(event["message"]["port"], number, "{event}");
    }
    let ports: Vec<u8> = fixture.queue("app-one").await.into_iter().map(|(port, ..)| port).collect();
    assert_eq!(ports, (1..=16).collect::<Vec<_>>());
}

// Conformance: `port`, `confirmed`, `schedule`, `payload_raw`, `payload_fields`
#[tokio::test]
async fn queues_downlinks_as_their_schedule_says() {
    let fixture = Fixture::new().await;
    let mut client = fixture.client("app-one").await;
    for (body, shown, waiting) in [
        (
            r#"{"port":2,"confirmed":true,"payload_fields":{"led":7}}"#,
            r#"{"port":2,"confirmed":true,"payload_fields":{"led":7}}"#,
            vec![(2, true, vec![7, 2])],
        ),
        (
            r#"{"payload_raw":"AQI=","schedule":"last","payload_fields":{}}"#,
            r#"{"port":0,"payload_raw":"AQI=","payload_fields":{}}"#,
            vec![(2, true, vec![7, 2]), (1, false, vec![1, 2])],
        ),
        (
            r#"{"port":3,"payload_raw":"Aw==","schedule":"first"}"#,
            r#"{"port":3,"payload_raw":"Aw=="}"#,
            vec![(3, false, vec![3]), (2, true, vec![7, 2]), (1, false, vec![1, 2])],
        ),
        (
            r#"{"port":223,"payload_raw":"BA==","schedule":null,"dev_id":"other"}"#,
            r#"{"port":223,"payload_raw":"BA=="}"#,
            vec![(223, false, vec![4])],
        ),
        (
            r#"{"port":5,"payload_raw":"BQ==\n","schedule":"replace"}"#,
            r#"{"port":5,"payload_raw":"BQ=="}"#,
            vec![(5, false, vec![5])],
        ),
    ] {
        let (topic, mut event) = event(&mut client, "app-one", "dev", body).await;
        let time = event.as_object_mut().unwrap().remove("time").unwrap();
        assert!(time.as_str().unwrap().ends_with('Z'), "{time}");
        let id = event.as_object_mut().unwrap().remove("downlink_id").unwrap();
        assert_eq!(id.as_str().unwrap().len(), 16, "{id}");
        assert_eq!(
            (topic.as_str(), event.to_string()),
            ("dev/events/down/scheduled", format!(r#"{{"message":{shown}}}"#))
        );
        assert_eq!(fixture.queue("app-one").await, waiting, "{body}");
    }
    assert_eq!(fixture.queue("app-two").await, []);
}

// Conformance: A downlink that cannot be sent causes an event on `down/errors`
// Conformance: Downlinks that make no sense, or for no device: an event on `down/errors`
#[tokio::test]
async fn reports_a_downlink_that_cannot_be_queued() {
    let fixture = Fixture::new().await;
    let (mut one, mut two) = (fixture.client("app-one").await, fixture.client("app-two").await);
    event(&mut one, "app-one", "dev", r#"{"payload_raw":"AQ=="}"#).await;
    let before = fixture.queue("app-one").await;
    let long = format!(r#"{{"payload_raw":"{}"}}"#, "AAAA".repeat(81));
    for (app_id, dev_id, body, error, has_message) in [
        ("app-one", "dev", r#"{"schedule":"soon","payload_raw":"AQ=="}"#, "ScheduleType not valid: unknown", true),
        ("app-one", "dev", r#"{"port":1}"#, "Downlink Payload not valid: empty", true),
        ("app-one", "dev", r#"{"payload_fields":{},"payload_raw":""}"#, "Downlink Payload not valid: empty", true),
        (
            "app-one",
            "dev",
            r#"{"payload_raw":"AQ==","payload_fields":{"led":1}}"#,
            "Downlink not valid: Both Fields and Payload provided",
            true,
        ),
        ("app-one", "dev", r#"{"port":224,"payload_raw":"AQ=="}"#, "Downlink Port not valid: 1 to 223", true),
        ("app-one", "dev", r#"{"port":256,"payload_raw":"AQ=="}"#, "Downlink not valid: invalid value", false),
        ("app-one", "dev", r#"{"payload_raw":"%%%"}"#, "Downlink not valid: Invalid symbol", false),
        ("app-one", "dev", "[]", "Downlink not valid: it is not a JSON object", false),
        ("app-one", "dev", r#" [7,false,"last","AQ=="]"#, "Downlink not valid: it is not a JSON object", false),
        ("app-one", "dev", "no JSON", "Downlink not valid: expected", false),
        ("app-one", "dev", &long, "Payload not valid: at most 242 bytes", true),
        ("app-one", "dev", r#"{"payload_fields":[1]}"#, "Fields not valid: ", true),
        ("app-one", "dev", r#"{"payload_fields":{"bad":1}}"#, "payload function not valid: ", true),
        ("app-one", "nobody", r#"{"payload_raw":"AQ=="}"#, "Device app-one:nobody not found", true),
        (
            "app-two",
            "dev",
            r#"{"payload_fields":{"led":1}}"#,
            "Downlink Payload not valid: fields supplied, but the payload format converts none",
            true,
        ),
    ] {
        let client = if app_id == "app-one" { &mut one } else { &mut two };
        let (topic, event) = event(client, app_id, dev_id, body).await;
        assert_eq!(topic, format!("{dev_id}/events/down/errors"), "{body}");
        assert!(event["error"].as_str().is_some_and(|text| text.starts_with(error)), "{body}: {event}");
        assert_eq!(event.get("message").is_some(), has_message, "{body}: {event}");
    }
    assert_eq!(fixture.queue("app-one").await, before);
    fixture.save("app-two", "custom", "").await;
    let (_, event) = event(&mut two, "app-two", "dev", r#"{"payload_fields":{"led":1}}"#).await;
    assert_eq!(event["error"], "Downlink Payload not valid: fields supplied, but no Encoder function set");
}

/// As in v2: clients may send back what they got, and one may not reach the devices of another.
// Conformance: The topic names the device, whatever the body says
#[tokio::test]
async fn the_topic_names_the_device_whatever_the_body_says() {
    let fixture = Fixture::new().await;
    let mut client = fixture.client("app-one").await;
    let body = r#"{"app_id":"app-two","dev_id":"another","port":5,"payload_raw":"AQ=="}"#;
    let (topic, event) = event(&mut client, "app-one", "dev", body).await;
    let expected = json!({"port": 5, "payload_raw": "AQ=="});
    assert_eq!((topic.as_str(), &event["message"]), ("dev/events/down/scheduled", &expected));
    assert_eq!(fixture.queue("app-one").await, [(5, false, vec![1])]);
    assert_eq!(fixture.queue("app-two").await, []);
}

// Conformance: A queue is bounded, and is deleted with its device
#[tokio::test]
async fn limits_a_queue_and_deletes_it_with_its_device() {
    let fixture = Fixture::new().await;
    let mut client = fixture.client("app-one").await;
    let last = r#"{"payload_raw":"AQ==","schedule":"last"}"#;
    for number in 0..32 {
        let (topic, event) = event(&mut client, "app-one", "dev", last).await;
        assert_eq!(topic, "dev/events/down/scheduled", "{number}: {event}");
    }
    let (topic, event) = event(&mut client, "app-one", "dev", last).await;
    assert_eq!(topic, "dev/events/down/errors");
    assert_eq!(event["error"], "Downlink not valid: the queue of the device is full: 32 are waiting");
    assert_eq!(fixture.queue("app-one").await.len(), 32);

    let dev_id = "dev".parse().unwrap();
    fixture.devices.delete(DevicePath { app_id: &id("app-one"), dev_id: &dev_id }).await.unwrap();
    fixture.devices.set(device("app-one")).await.unwrap();
    assert_eq!(fixture.queue("app-one").await, []);
}

#[tokio::test]
async fn uses_the_port_of_the_encoder_unless_the_downlink_has_one() {
    let fixture = Fixture::new().await;
    let encoder = "function encodeDownlink(input) { return { bytes: [9], fPort: 42 }; }";
    fixture.save("app-one", "ts013", encoder).await;
    let mut client = fixture.client("app-one").await;
    for (port, expected) in [(0, 42), (7, 7)] {
        let body = json!({"port": port, "payload_fields": {"led": 1}}).to_string();
        event(&mut client, "app-one", "dev", &body).await;
        assert_eq!(fixture.queue("app-one").await, [(expected, false, vec![9])]);
    }
}

#[tokio::test]
async fn an_event_has_the_warnings_of_the_encoder() {
    let fixture = Fixture::new().await;
    let encoder = "function encodeDownlink(input) { return { bytes: [9], warnings: ['led is old'] }; }";
    fixture.save("app-one", "ts013", encoder).await;
    let mut client = fixture.client("app-one").await;
    let (topic, event) = event(&mut client, "app-one", "dev", r#"{"payload_fields":{"led":1}}"#).await;
    assert_eq!((topic.as_str(), &event["warnings"]), ("dev/events/down/scheduled", &json!(["led is old"])));
}

// Conformance: QoS 1: redelivery in order, and a PUBACK only for what was accepted
#[tokio::test]
async fn accepts_a_downlink_only_when_it_is_in_the_queue_of_its_device() {
    let fixture = Fixture::new().await;
    let mut client = fixture.client("app-one").await;
    let copies = AtomicUsize::new(0);
    let accept = |body: &'static [u8]| {
        let downlink = PublishedDownlink {
            app_id: id("app-one"),
            dev_id: "dev".parse().unwrap(),
            body: body.into(),
            is_late: false,
            offer: Offer::Once,
        };
        fixture.receiver.accept(downlink, Box::new(|| _ = copies.fetch_add(1, Ordering::Relaxed)))
    };
    fixture.failing.fail_after(0);
    assert_eq!(accept(br#"{"payload_raw":"AQ=="}"#).await, Err(DownlinkRefusal::Unavailable));
    assert_eq!(copies.load(Ordering::Relaxed), 0);
    assert_eq!(client.next().await.0, "app-one/devices/dev/events/down/errors");
    // What can never be kept has been answered with its event.
    assert_eq!(accept(b"no JSON").await, Err(DownlinkRefusal::Invalid));
    assert_eq!(copies.load(Ordering::Relaxed), 1);
    assert_eq!(client.next().await.0, "app-one/devices/dev/events/down/errors");
    fixture.failing.recover();
    assert_eq!(fixture.queue("app-one").await, []);
    assert_eq!(accept(br#"{"payload_raw":"AQ=="}"#).await, Ok(()));
    assert_eq!(fixture.queue("app-one").await, [(1, false, vec![1])]);
}

#[tokio::test]
async fn a_downlink_that_always_fails_is_reported_once() {
    let fixture = Fixture::new().await;
    let mut client = fixture.client("app-one").await;
    let body = br#"{"payload_raw":"AQ==","schedule":"last"}"#;
    fixture.failing.fail_after(0);
    for offer in [Offer::Again, Offer::Last] {
        assert_eq!(fixture.accept(body, offer).await, Err(DownlinkRefusal::Unavailable), "the store is away");
    }
    fixture.failing.recover();
    assert_eq!(fixture.store.commit(Batch::new().put(queue_key("app-one"), "damaged")).await.unwrap(), Commit::Done);
    for offer in [Offer::Again, Offer::Again, Offer::Last] {
        assert_eq!(fixture.accept(body, offer).await, Err(DownlinkRefusal::Failed));
    }
    let (topic, event) = client.next().await;
    assert_eq!(topic, "app-one/devices/dev/events/down/errors");
    assert_eq!(serde_json::from_str::<Value>(&event).unwrap()["error"], "internal error");
    assert_eq!(fixture.store.commit(Batch::new().delete(queue_key("app-one"))).await.unwrap(), Commit::Done);
    fixture.accept(body, Offer::Once).await.unwrap();
    assert_eq!(client.next().await.0, "app-one/devices/dev/events/down/scheduled", "it was reported twice");
}

/// Another handler held it and was killed, and accepted it again when newer ones waited.
#[tokio::test]
async fn a_late_downlink_replaces_nothing() {
    let fixture = Fixture::new().await;
    let accept = async |is_late, body: &'static str| {
        let (app_id, dev_id) = (id("app-one"), "dev".parse().unwrap());
        let downlink = PublishedDownlink { app_id, dev_id, body: body.into(), is_late, offer: Offer::Once };
        fixture.receiver.accept(downlink, Box::new(|| ())).await.unwrap();
    };
    accept(false, r#"{"payload_raw":"Ag=="}"#).await;
    for body in [r#"{"payload_raw":"AQ=="}"#, r#"{"payload_raw":"AQ=="}"#, r#"{"payload_raw":"Ag=="}"#] {
        accept(true, body).await;
        assert_eq!(fixture.queue("app-one").await, [(1, false, vec![2]), (1, false, vec![1])]);
    }
    accept(true, r#"{"payload_raw":"Aw==","schedule":"first"}"#).await;
    let queue = [(1, false, vec![3]), (1, false, vec![2]), (1, false, vec![1])];
    assert_eq!(fixture.queue("app-one").await, queue);
    accept(false, r#"{"payload_raw":"AQ=="}"#).await;
    assert_eq!(fixture.queue("app-one").await, [(1, false, vec![1])]);
}
