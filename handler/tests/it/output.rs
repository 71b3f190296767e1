//! The MQTT output: topics, bodies and their order.

use std::sync::Arc;

use handler::output::{Event, Message, Output, OutputSettings, mqtt::MqttOutput, queued::QueuedOutput};
use outputs::{Environment, EveryGrant, OperatorOutputs, OperatorSettings, Outputs, Webhook};
use serde_json::{Value, json};
use server::{
    ledger::{BudgetSettings, Ledger, Owners},
    seal::{KeyOwner, SealingKeys},
    system::OsRandom,
};
use store::{Embedded, Key, Store, Tag};
use testing::ManualClock;
use types::{Activation, DevEui, DeviceEvent, DownlinkEvent, ErrorEvent, Random, SilentEvent, Timestamp};

use crate::harness::{Harness, message, mqtt_client::MqttClient, uplink};

async fn subscriber(harness: &Harness) -> MqttClient {
    subscribe(harness, "#").await
}

async fn subscribe(harness: &Harness, filter: &str) -> MqttClient {
    MqttClient::connect(harness.broker.address(), "app-one", filter).await
}

/// The counter of the next uplink.
async fn next_counter(client: &mut MqttClient) -> u64 {
    let uplink: Value = serde_json::from_str(&client.next().await.1).unwrap();
    uplink["counter"].as_u64().unwrap()
}

// Conformance: Events on their topics, for those who may read
#[tokio::test]
async fn publishes_events_in_order_under_their_topics() {
    let harness = Harness::start().await;
    let mut subscriber = subscriber(&harness).await;
    let output = harness.output();
    let error = ErrorEvent { error: "no".to_owned(), ..ErrorEvent::default() };
    let activation = Activation::default();
    let downlink = DownlinkEvent { error: Some("no".to_owned()), ..DownlinkEvent::default() };
    let device =
        DeviceEvent { latitude: None, longitude: None, altitude: Some(3), update_at: Timestamp::from_millis(1) };
    let activation_json = r#"{"app_eui":"","dev_eui":"","dev_addr":"","metadata":{"time":""}}"#;
    let device_json = r#"{"altitude":3,"update_at":"1970-01-01T00:00:00.001Z"}"#;
    let silent = SilentEvent {
        app_id: "app-one".parse().unwrap(),
        dev_id: "dev".parse().unwrap(),
        hardware_serial: DevEui::default(),
        last_seen: None,
        silent_after_s: "1h".parse().unwrap(),
        time: Timestamp::from_millis(1),
    };
    let silent_json = r#"{"app_id":"app-one","dev_id":"dev","silent_after_s":3600,"time":"1970-01-01T00:00:00.001Z"}"#;
    for (event, topic, body) in [
        (Event::UpError(error), "events/up/errors", r#"{"error":"no"}"#),
        (Event::Activation(activation.clone()), "events/activations", activation_json),
        (Event::ActivationError(activation), "events/activations/errors", activation_json),
        (Event::DownlinkScheduled(downlink.clone()), "events/down/scheduled", r#"{"error":"no"}"#),
        (Event::DownlinkError(downlink), "events/down/errors", r#"{"error":"no"}"#),
        (Event::Create(None), "events/create", "null"),
        (Event::Create(Some(device.clone())), "events/create", device_json),
        (Event::Update(device), "events/update", device_json),
        (Event::Delete, "events/delete", "null"),
        (Event::Silent(Box::new(silent)), "events/silent", silent_json),
    ] {
        output.publish(message("app-one", event)).wait().await.unwrap();
        assert_eq!(subscriber.next().await, (format!("app-one/devices/dev/{topic}"), body.to_owned()));
    }
    output.publish(uplink("app-one", 7, None)).wait().await.unwrap();
    let expected = json!({
        "app_id": "app-one", "dev_id": "dev", "port": 1, "counter": 7, "payload_raw": null, "metadata": { "time": "" },
    });
    assert_eq!(subscriber.next().await, ("app-one/devices/dev/up".to_owned(), expected.to_string()));
}

/// More than any output takes.
fn large_uplink() -> Message {
    uplink("app-one", 1, Some(&json!({ "text": "x".repeat(300_000) }).to_string()))
}

#[tokio::test]
async fn reports_a_message_that_is_too_large_and_drops_it() {
    let harness = Harness::start().await;
    let mut subscriber = subscriber(&harness).await;
    let output = harness.output();
    output.publish(large_uplink()).wait().await.unwrap();
    output.publish(uplink("app-one", 2, None)).wait().await.unwrap();
    let (topic, body) = subscriber.next().await;
    assert_eq!(topic, "app-one/devices/dev/events/up/errors");
    let error: ErrorEvent = serde_json::from_str(&body).unwrap();
    assert!(error.error.contains("Have the payload functions return less"), "{}", error.error);
    assert_eq!(next_counter(&mut subscriber).await, 2);
}

#[tokio::test]
async fn reports_a_message_that_is_too_large_for_webhooks() {
    server::system::install_crypto();
    let clock = ManualClock::new();
    let store: Arc<dyn Store> = Arc::new(Embedded::in_memory(clock.for_store()).unwrap());
    let (settings, random): (_, Arc<dyn Random>) = (outputs::Settings::default(), Arc::new(OsRandom));
    let none = OperatorSettings { amqp: &[], redis: &[], kafka: &[] };
    let environment = Environment {
        store: store.clone(),
        is_shared: false,
        clock: clock.clone(),
        random: random.clone(),
        keys: SealingKeys::new(KeyOwner::Handler, &[7; 32]).unwrap(),
        operator: OperatorOutputs::start(none, &settings, &random).unwrap(),
        look_up: outputs::system_look_up(),
        ledger: Ledger::new(&BudgetSettings::default()),
        owners: Arc::new(Owners::unknown(clock.clone())),
        grants: Arc::new(EveryGrant),
        threads: tokio::runtime::Handle::current(),
    };
    let outputs = Arc::new(Outputs::start(&settings, environment).unwrap());
    let webhook = Webhook { url: "https://nowhere.invalid".to_owned(), ..Webhook::default() };
    outputs.webhooks().set(&"app-one".parse().unwrap(), &"hook".parse().unwrap(), webhook).await.unwrap();
    let output = QueuedOutput::new(outputs, clock);
    output.publish(large_uplink()).wait().await.unwrap();
    output.publish(uplink("app-one", 2, None)).wait().await.unwrap();
    let queue = Key::new(&Tag::application("app-one").unwrap(), "handler/output/queue/").unwrap();
    let queued = store.list(&queue, None, 10).await.unwrap();
    let queued =
        queued.iter().map(|entry| serde_json::from_slice::<outputs::OutputMessage>(&entry.value).unwrap().event);
    assert_eq!(Vec::from_iter(queued), ["up/errors", "up"]);
}

// Conformance: A topic for each field, nested ones by path
#[tokio::test]
async fn publishes_field_topics_unless_they_are_switched_off() {
    let harness = Harness::start().await;
    let mut subscriber = subscriber(&harness).await;
    let fields = r#"{"temperature":21.5,"gps":{"lat":1}}"#;
    let settings = OutputSettings { field_topics: false, ..Default::default() };
    let plain = MqttOutput::new(harness.router.clone(), &settings);
    plain.publish(uplink("app-one", 1, Some(fields))).wait().await.unwrap();
    plain.publish(uplink("app-one", 2, None)).wait().await.unwrap();
    assert_eq!((next_counter(&mut subscriber).await, next_counter(&mut subscriber).await), (1, 2));

    let output = harness.output();
    output.publish(uplink("app-one", 3, Some(fields))).wait().await.unwrap();
    assert_eq!(next_counter(&mut subscriber).await, 3);
    for (topic, body) in [("up/temperature", "21.5"), ("up/gps", r#"{"lat":1}"#), ("up/gps/lat", "1")] {
        assert_eq!(subscriber.next().await, (format!("app-one/devices/dev/{topic}"), body.to_owned()));
    }
}

/// Fields are published only if somebody subscribed to them, which may be at any time. None of them is retained.
// Conformance: A topic for each field, nested ones by path
#[tokio::test]
async fn a_subscriber_to_fields_that_comes_later_gets_those_of_the_next_uplink() {
    let harness = Harness::start().await;
    let settings = OutputSettings { field_topics: true, ..Default::default() };
    let output = MqttOutput::new(harness.router.clone(), &settings);
    let publish = async |counter, temperature| {
        let fields = json!({ "temperature": temperature }).to_string();
        output.publish(uplink("app-one", counter, Some(&fields))).wait().await.unwrap();
    };
    let has_subscribers = || {
        let app_id = "app-one".parse().unwrap();
        harness.router.has_subscribers_below(&app_id, "app-one/devices/dev/up")
    };
    publish(1, 20).await;
    let mut uplinks = subscribe(&harness, "+/devices/+/up").await;
    publish(2, 21).await;
    assert_eq!(next_counter(&mut uplinks).await, 2);
    assert!(!has_subscribers());
    for (number, filter) in ["+/devices/dev/up/temperature", "+/devices/+/up/+", "+/devices/#"].into_iter().enumerate()
    {
        let counter = 10 + u32::try_from(number).unwrap();
        let mut fields = subscribe(&harness, filter).await;
        assert!(has_subscribers(), "{filter}");
        publish(counter, counter).await;
        let topic = "app-one/devices/dev/up/temperature".to_owned();
        let mut first = fields.next().await;
        if filter.ends_with('#') {
            first = fields.next().await;
        }
        assert_eq!(first, (topic, counter.to_string()), "{filter}");
        assert_eq!(next_counter(&mut uplinks).await, u64::from(counter));
    }
}
