//! Messages to and from the broker, and its outages.

use std::time::Duration;

use serde_json::{Value, json};
use testing::{Mosquitto, MqttClient, Proxy, RedisProcess};
use tokio::time::timeout;
use types::{Kind, Kinded};

use super::until_ready;
use crate::{
    delivery::delivery_to,
    harness::{MESSAGE_TIMEOUT, Network, Owner, next},
};

const DECODER: &str = "function Decoder(bytes) { return { n: bytes[0] }; }";

/// An application with a device, and a client of the broker that receives its messages.
async fn start(network: &Network, mosquitto: &Mosquitto) -> (Owner, MqttClient) {
    let owner = network.owner("extern").await;
    owner.set_functions([DECODER, "", ""]).await.unwrap();
    owner.add_device("dev-1").await;
    let mut listener = MqttClient::connect_as(&mosquitto.url(), "listener").await;
    listener.subscribe(&format!("{}/devices/+/up/#", owner.app_id)).await;
    listener.subscribe(&format!("{}/devices/+/events/down/#", owner.app_id)).await;
    let overview = network.stack.overview();
    until_ready(overview.rsplit(' ').next().unwrap()).await;
    (owner, listener)
}

async fn send_down(client: &mut MqttClient, payload: &str) {
    client.publish("extern-app/devices/dev-1/down", json!({ "payload_raw": payload }).to_string()).await;
}

async fn queued(network: &Network, owner: &Owner) -> Vec<Value> {
    let url = format!("{}/applications/extern-app/devices/dev-1/downlinks", network.handler_http());
    let request = reqwest::Client::new().get(url).header("authorization", owner.token.to_header());
    let body: Value = request.send().await.unwrap().json().await.unwrap();
    body["downlinks"].as_array().unwrap().iter().map(|downlink| downlink["payload_raw"].clone()).collect()
}

/// Waits until a downlink was refused, and comes again.
async fn until_retried(metrics: &str) {
    let retried = async {
        loop {
            let text = reqwest::get(metrics).await.unwrap().text().await.unwrap();
            if text.lines().any(|line| line.starts_with("airlock_bridge_retried_total ") && !line.ends_with(" 0")) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(MESSAGE_TIMEOUT, retried).await.expect("it is offered again");
}

// Conformance: Through an existing broker
#[tokio::test(flavor = "multi_thread")]
async fn messages_go_to_the_broker_and_downlinks_come_from_it() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let network = Network::with(|settings| settings.external_broker.mqtt.url = mosquitto.url()).await;
    assert_eq!(network.announcement().await.mqtt_address, mosquitto.address().to_string());
    let (owner, mut listener) = start(&network, &mosquitto).await;
    let mut embedded = owner.listen(&network).await;
    owner.simulate("dev-1", &[7], 1).await.unwrap();
    let (topic, up) = next(&mut listener).await;
    assert_eq!((topic.as_str(), &up["payload_fields"]), ("dev-1/up", &json!({"n": 7})));
    assert_eq!(next(&mut listener).await, ("dev-1/up/n".to_owned(), json!(7)));
    assert_eq!(next(&mut embedded).await, (topic, up), "clients of the embedded broker hear it too");
    let delivery = delivery_to("broker", &network, &owner).await;
    assert_eq!((&delivery["state"], &delivery["attempts"]), (&json!("delivered"), &json!(1)), "{delivery}");
    assert!(delivery["delivered_at"].is_string() && delivery["duration_us"].is_u64(), "{delivery}");
    let mut client = MqttClient::connect(&mosquitto.url()).await;
    send_down(&mut client, "AQ==").await;
    let (topic, event) = next(&mut listener).await;
    assert_eq!((topic.as_str(), &event["message"]["payload_raw"]), ("dev-1/events/down/scheduled", &json!("AQ==")));
    assert_eq!(queued(&network, &owner).await, ["AQ=="]);
    // What names nothing known is refused for good, and holds nothing up.
    client.publish("extern-app/devices/nobody/down", "{}").await;
    client.publish("Not an application/devices/dev-1/down", "{}").await;
    send_down(&mut client, "Ag==").await;
    assert_eq!(next(&mut listener).await.0, "nobody/events/down/errors");
    assert_eq!(next(&mut listener).await.0, "dev-1/events/down/scheduled");
    network.stack.stop().await;
}

// Conformance: Through an existing broker
#[tokio::test(flavor = "multi_thread")]
async fn an_uplink_that_the_broker_does_not_confirm_is_not_accepted() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let proxy = Proxy::start(Some(mosquitto.address())).await;
    let network = Network::with(|settings| {
        settings.external_broker.mqtt.url = format!("mqtt://{}", proxy.address);
        settings.external_broker.announced_address = Some("mqtt.example.com:1883".to_owned());
        settings.output.field_topics = false;
    })
    .await;
    assert_eq!(network.announcement().await.mqtt_address, "mqtt.example.com:1883");
    let (owner, mut listener) = start(&network, &mosquitto).await;
    owner.simulate("dev-1", &[1], 1).await.unwrap();
    proxy.redirect(None).await;
    let error = owner.simulate("dev-1", &[2], 1).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable, "{error}");
    // It depends on whether the lost connection has been noticed.
    let reasons = ["the MQTT broker does not confirm messages", "the MQTT broker is not connected"];
    assert!(reasons.iter().any(|reason| error.to_string().contains(reason)), "{error}");
    proxy.redirect(Some(mosquitto.address())).await;
    while owner.simulate("dev-1", &[3], 1).await.is_err() {}
    for expected in [1, 3] {
        assert_eq!(next(&mut listener).await.1["payload_fields"], json!({ "n": expected }));
    }
    network.stack.stop().await;
}

// Conformance: A downlink stays in the broker until it is in the queue of its device
#[tokio::test(flavor = "multi_thread")]
async fn a_downlink_waits_in_the_broker_until_it_can_be_stored() {
    let (Some(mosquitto), Some(redis)) = (Mosquitto::start(), RedisProcess::start()) else { return };
    let network = Network::on(&redis, |settings| settings.external_broker.mqtt.url = mosquitto.url()).await;
    let (owner, mut listener) = start(&network, &mosquitto).await;
    let mut client = MqttClient::connect(&mosquitto.url()).await;
    redis.fill();
    send_down(&mut client, "AQ==").await;
    let overview = network.stack.overview();
    until_retried(overview.rsplit(' ').next().unwrap()).await;
    redis.empty();
    assert_eq!(next(&mut listener).await.0, "dev-1/events/down/scheduled", "it was no error");
    assert_eq!(queued(&network, &owner).await, ["AQ=="]);
    network.stack.stop().await;
}
