//! Shadow mode: what it sees, and that it publishes nothing.

use bridge::{Observation, ObservedResult, Running};
use chirpstack::ChirpStackShadow;
use serde_json::{Value, json};
use testing::{CHIRPSTACK_APPLICATION, RedisProcess, chirpstack_uplink, soon};
use tokio::sync::mpsc;

use crate::harness::{Network, device_info, send, topic, uplink};

const DEVICE: &str = "a300000000000000";
const STREAM: &[u8] = b"device:stream:event";

async fn shadow(network: &Network) -> (ChirpStackShadow, mpsc::UnboundedReceiver<Observation>) {
    let (sender, observations) = mpsc::unbounded_channel();
    let observe = move |observation| sender.send(observation).unwrap();
    let shadow = ChirpStackShadow::start(&network.settings, network.environment("shadow"), observe).await.unwrap();
    soon("the subscription", shadow.ready()).await;
    (shadow, observations)
}

fn object(result: &ObservedResult) -> Option<Value> {
    match result {
        ObservedResult::Object(object) => Some(serde_json::from_str(object.get()).unwrap()),
        ObservedResult::Failed(_) | ObservedResult::Nothing => None,
    }
}

#[tokio::test]
async fn it_sees_both_results_and_publishes_nothing() {
    let Some(network) = Network::start().await else { return };
    network
        .device(DEVICE, "function decodeUplink(input) { undeclared = input.bytes[0]; return {data: {n: undeclared}} }");
    let mut application = network.chirpstack().await;
    application.subscribe("#").await;
    let (_shadow, mut observations) = shadow(&network).await;
    let mut chirpstack = network.chirpstack().await;

    let mut event = uplink(DEVICE, 1, "AQID");
    event["object"] = json!({"n": 1.0});
    chirpstack.publish(&topic(DEVICE, "up"), event.to_string()).await;
    let seen = soon("an observation", observations.recv()).await.unwrap();
    assert_eq!((object(&seen.theirs), object(&seen.ours)), (Some(json!({"n": 1.0})), Some(json!({"n": 1}))));
    assert_eq!((seen.profile_id.as_str(), seen.profile_name.as_str()), (DEVICE, "profile a300000000000000"));
    let of_it = (seen.application.id.as_str(), seen.application.name.as_str());
    assert_eq!(of_it, (CHIRPSTACK_APPLICATION, "lab"));
    assert!(seen.fuel > 0);

    // The uplink has no object, and the `log` event comes before or after it.
    let description = "JS error: Error: undeclared is not defined\n    at decodeUplink (main:5:1)\n";
    let log = |counter: u32| {
        json!({
            "time": "2026-11-22T16:45:59.715323580+00:00", "deviceInfo": device_info(DEVICE), "level": "ERROR",
            "code": "UPLINK_CODEC", "description": description,
            "context": {"deduplication_id": format!("{DEVICE}-{counter}")},
        })
    };
    chirpstack.publish(&topic(DEVICE, "log"), log(2).to_string()).await;
    send(&mut chirpstack, DEVICE, 2, "AQID").await;
    send(&mut chirpstack, DEVICE, 3, "AQID").await;
    chirpstack.publish(&topic(DEVICE, "log"), log(3).to_string()).await;
    for _ in 0..2 {
        let seen = soon("an observation", observations.recv()).await.unwrap();
        assert!(matches!(&seen.theirs, ObservedResult::Failed(text) if text == description), "{seen:?}");
        assert_eq!(object(&seen.ours), Some(json!({"n": 1})));
    }

    send(&mut chirpstack, DEVICE, 4, "AQID").await;
    let seen = soon("an observation", observations.recv()).await.unwrap();
    assert!(matches!(seen.theirs, ObservedResult::Nothing), "{seen:?}");

    // The application heard ChirpStack's own messages and nothing else.
    chirpstack.publish("this/is/the/end", "").await;
    for expected in ["event/up", "event/log", "event/up", "event/up", "event/log", "event/up", "the/end"] {
        assert_eq!(application.next().await.kind(), expected);
    }
}

/// The stream has no consumer group afterwards, and keeps its entries.
#[tokio::test]
async fn it_sees_both_results_in_redis() {
    let (Some(redis), Some(mut network)) = (RedisProcess::start(), Network::start().await) else { return };
    network.device(DEVICE, "function decodeUplink(input) { return {data: {n: input.bytes[0]}} }");
    network.settings.mqtt.url.clear();
    network.settings.redis.url = redis.url();
    let add = |event: &Value| redis.call(&[b"XADD", STREAM, b"*", b"up", &chirpstack_uplink(event)]);
    add(&uplink(DEVICE, 0, "AQ=="));
    let (_shadow, mut observations) = shadow(&network).await;
    let mut event = uplink(DEVICE, 1, "Ag==");
    event["object"] = json!({"n": 2});
    for _ in 0..2 {
        add(&event);
        let seen = soon("an observation", observations.recv()).await.unwrap();
        assert_eq!((object(&seen.theirs), object(&seen.ours)), (Some(json!({"n": 2.0})), Some(json!({"n": 2}))));
    }
    assert_eq!(redis.call(&[b"XINFO", b"GROUPS", STREAM]), "*0\r\n");
    assert_eq!(redis.call(&[b"XLEN", STREAM]), ":3\r\n");
}

#[tokio::test]
async fn it_takes_nothing_from_a_bridge() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICE, "function decodeUplink(input) { return {data: {n: input.bytes[0]}} }");
    let _bridge = network.bridge().await;
    let (_shadow, mut observations) = shadow(&network).await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    for counter in 0..20 {
        send(&mut chirpstack, DEVICE, counter, "AQ==").await;
    }
    for _ in 0..20 {
        application.next().await;
        soon("an observation", observations.recv()).await.unwrap();
    }
}
