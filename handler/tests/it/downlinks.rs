//! Downlinks that applications publish: what waits for their devices then, and what the applications are told.

use std::sync::Arc;

use handler::{
    Settings,
    application::{Application, Applications, Functions, JoinKey},
    device::Devices,
    downlink::Downlinks,
    output::mqtt::DownlinkSubscriber,
    payload::Payloads,
};
use serde_json::{Value, json};
use server::system::SystemClock;
use store::{Clock, Embedded, Store};
use tokio::task::JoinHandle;

use crate::{
    mqtt_client::MqttClient,
    records::{application, device, id, pool},
    stage::{APPS, SameBytes, Stage, becomes, soon, vault},
};

const ENCODER: &str = "function Encoder(object, port) { \
    if (object.bad) { throw new Error('no such lamp'); } return [object.led, port]; }";

/// A handler that takes downlinks: `app-one` has an encoder, `app-two` none, each has the device `dev`.
struct Rig {
    stage: Stage,
    applications: Applications,
    devices: Devices,
    downlinks: Arc<Downlinks>,
    subscriber: DownlinkSubscriber,
    serving: JoinHandle<()>,
}

impl Rig {
    async fn new() -> Self {
        let stage = Stage::set().await;
        let store: Arc<dyn Store> = Arc::new(Embedded::in_memory(Clock::new(|| 0)).unwrap());
        let vault = vault(store.as_ref()).await;
        let (applications, devices) =
            (Applications::new(store.clone(), vault.clone()), Devices::new(store.clone(), vault));
        for app_id in APPS {
            applications.register(&id(app_id)).await.unwrap();
            devices.set(device(app_id)).await.unwrap();
        }
        let downlinks = Arc::new(Downlinks {
            applications: applications.clone(),
            devices: devices.clone(),
            payloads: Arc::new(Payloads::new(pool(), &Settings::default()).unwrap()),
            output: Arc::new(stage.output().await),
            store,
            traffic: Arc::default(),
            clock: Arc::new(SystemClock),
        });
        let (subscriber, published) = DownlinkSubscriber::connect(&stage.broker.internal(), &SameBytes);
        becomes(subscriber.subscribed(), true).await;
        let serving = tokio::spawn(Arc::clone(&downlinks).serve(published));
        let rig = Self { stage, applications, devices, downlinks, subscriber, serving };
        rig.save("app-one", "custom", ENCODER).await;
        rig
    }

    async fn save(&self, app_id: &str, format: &str, encoder: &str) {
        let functions = Functions { encoder: encoder.to_owned(), ..Functions::default() };
        let application = Application { functions, ..application(app_id, format, "") };
        self.applications.set(application, JoinKey::Replaced).await.unwrap();
    }

    /// Somebody who hears the events of an application, and publishes.
    async fn client(&self, app_id: &str) -> MqttClient {
        MqttClient::connect(self.stage.broker.address(), app_id, "+/devices/+/events/#").await
    }

    /// What waits for the device, each as its port, whether it is confirmed, and its bytes.
    async fn waiting(&self, app_id: &str) -> Vec<(u8, bool, Vec<u8>)> {
        let waiting = self.downlinks.waiting(&id(app_id), &"dev".parse().unwrap()).await.unwrap();
        let shown = |downlink: types::Downlink| {
            assert!(downlink.payload_fields.is_none() && downlink.schedule.is_none());
            (downlink.port, downlink.confirmed, downlink.payload_raw.unwrap())
        };
        waiting.into_iter().map(shown).collect()
    }
}

/// Publishes, and gives the event that comes of it, its topic without the application.
async fn event(client: &mut MqttClient, app_id: &str, dev_id: &str, body: &str) -> (String, Value) {
    client.publish(&format!("{app_id}/devices/{dev_id}/down"), body).await;
    let (topic, event) = client.next().await;
    let topic = topic.strip_prefix(&format!("{app_id}/devices/")).unwrap().to_owned();
    (topic, serde_json::from_str(&event).unwrap())
}

#[tokio::test]
async fn a_burst_for_one_device_keeps_its_order() {
    let rig = Rig::new().await;
    let mut client = rig.client("app-one").await;
    // More would be more than one application may have under way.
    for number in 1..=16 {
        let body = format!(r#"{{"port":{number},"payload_raw":"AQ==","schedule":"last"}}"#);
        client.publish("app-one/devices/dev/down", &body).await;
    }
    for number in 1..=16 {
        let event: Value = serde_json::from_str(&client.next().await.1).unwrap();
        assert_eq!(event["message"]["port"], number, "{event}");
    }
    let ports: Vec<u8> = rig.waiting("app-one").await.into_iter().map(|(port, ..)| port).collect();
    assert_eq!(ports, (1..=16).collect::<Vec<_>>());
}

#[tokio::test]
async fn downlinks_wait_in_the_order_that_was_asked_for() {
    let rig = Rig::new().await;
    let mut client = rig.client("app-one").await;
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
            r#"{"port":5,"payload_raw":"BQ==","schedule":"replace"}"#,
            r#"{"port":5,"payload_raw":"BQ=="}"#,
            vec![(5, false, vec![5])],
        ),
    ] {
        let (topic, event) = event(&mut client, "app-one", "dev", body).await;
        assert_eq!(
            (topic.as_str(), event.to_string()),
            ("dev/events/down/scheduled", format!(r#"{{"message":{shown}}}"#))
        );
        assert_eq!(rig.waiting("app-one").await, waiting, "{body}");
    }
    assert_eq!(rig.waiting("app-two").await, []);
}

#[tokio::test]
async fn what_cannot_be_sent_is_told_and_changes_nothing() {
    let rig = Rig::new().await;
    let (mut one, mut two) = (rig.client("app-one").await, rig.client("app-two").await);
    event(&mut one, "app-one", "dev", r#"{"payload_raw":"AQ=="}"#).await;
    let before = rig.waiting("app-one").await;
    let long = format!(r#"{{"payload_raw":"{}"}}"#, "AAAA".repeat(86));
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
        ("app-one", "dev", "no JSON", "Downlink not valid: expected", false),
        ("app-one", "dev", &long, "Payload not valid: at most 255 bytes", true),
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
    assert_eq!(rig.waiting("app-one").await, before);
    rig.save("app-two", "custom", "").await;
    let (_, told) = event(&mut two, "app-two", "dev", r#"{"payload_fields":{"led":1}}"#).await;
    assert_eq!(told["error"], "Downlink Payload not valid: fields supplied, but no Encoder function set");
}

#[tokio::test]
async fn a_queue_has_an_end_and_goes_with_its_device() {
    let rig = Rig::new().await;
    let mut client = rig.client("app-one").await;
    let last = r#"{"payload_raw":"AQ==","schedule":"last"}"#;
    for number in 0..32 {
        let (topic, event) = event(&mut client, "app-one", "dev", last).await;
        assert_eq!(topic, "dev/events/down/scheduled", "{number}: {event}");
    }
    let (topic, told) = event(&mut client, "app-one", "dev", last).await;
    assert_eq!(topic, "dev/events/down/errors");
    assert_eq!(told["error"], "Downlink not valid: 32 wait for this device already, which is the most");
    assert_eq!(rig.waiting("app-one").await.len(), 32);

    let dev_id = "dev".parse().unwrap();
    rig.devices.delete(&id("app-one"), &dev_id).await.unwrap();
    rig.devices.set(device("app-one")).await.unwrap();
    assert_eq!(rig.waiting("app-one").await, []);
}

#[tokio::test]
async fn an_encoder_may_choose_the_port_when_nobody_else_does() {
    let rig = Rig::new().await;
    let encoder = "function encodeDownlink(input) { return { bytes: [9], fPort: 42 }; }";
    rig.save("app-one", "ts013", encoder).await;
    let mut client = rig.client("app-one").await;
    for (port, expected) in [(0, 42), (7, 7)] {
        let body = json!({"port": port, "payload_fields": {"led": 1}}).to_string();
        event(&mut client, "app-one", "dev", &body).await;
        assert_eq!(rig.waiting("app-one").await, [(expected, false, vec![9])]);
    }
}

#[tokio::test]
async fn what_arrived_is_finished_before_the_handler_ends() {
    let Rig { stage, subscriber, serving, .. } = Rig::new().await;
    drop(subscriber);
    soon("the end of the downlinks", serving).await.unwrap();
    stage.broker.shutdown().await;
}
