//! Handling of events, apart from decoding.

use serde_json::{Value, json};
use testing::CHIRPSTACK_APPLICATION;

use crate::harness::{Network, next_log_and_up, next_up, send, topic, uplink};

const DEVICE: &str = "a300000000000000";
const SCRIPT: &str = "function decodeUplink(input) { return {data: {n: input.bytes[0]}} }";

#[tokio::test]
async fn an_uplink_keeps_its_topic_and_everything_but_the_object() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICE, SCRIPT);
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    // Numbers keep their digits, and members that nobody knows yet their place.
    let event = uplink(DEVICE, 1, "AQID").to_string().replace("7.5", "7.500").replace("}}}", "}}},\"new\":[1e3]");
    chirpstack.publish(&topic(DEVICE, "up"), event.clone()).await;
    let message = application.next().await;
    assert_eq!(message.topic, format!("airlock/{}", topic(DEVICE, "up")));
    let expected = event.replace(r#""data":"AQID","#, r#""data":"AQID","object":{"n":1},"#);
    assert_eq!(String::from_utf8(message.payload).unwrap(), expected);
}

#[tokio::test]
async fn an_object_of_the_network_is_replaced() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICE, SCRIPT);
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    let mut event = uplink(DEVICE, 1, "AQID");
    event["object"] = json!({"old": 1.0});
    chirpstack.publish(&topic(DEVICE, "up"), event.to_string()).await;
    assert_eq!(next_up(&mut application).await["object"], json!({"n": 1}));
}

#[tokio::test]
async fn other_events_and_what_cannot_be_decoded_pass_unchanged() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICE, SCRIPT);
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    let without = |member: &str| {
        let mut event = uplink(DEVICE, 1, "AQID");
        event.as_object_mut().unwrap().remove(member);
        event.to_string().into_bytes()
    };
    let with = |member: &str, value: Value| {
        let mut event = uplink(DEVICE, 2, "AQID");
        event[member] = value;
        event.to_string().into_bytes()
    };
    let protobuf = b"\x0a\x24bf75e9d6-3bb1-4872-a364-ed7d8d7c5bf7\xff".to_vec();
    for (event, payload) in [
        ("join", br#"{"deduplicationId":"j1","devAddr":"00030000"}"#.to_vec()),
        ("ack", br#"{"queueItemId":"q1","acknowledged":true,"fCntDown":10}"#.to_vec()),
        ("txack", br#"{"downlinkId":1}"#.to_vec()),
        ("status", br#"{"margin":7}"#.to_vec()),
        ("log", br#"{"code":"EXPIRED"}"#.to_vec()),
        ("location", br#"{"location":{}}"#.to_vec()),
        ("integration", br#"{"integrationName":"x"}"#.to_vec()),
        ("of-next-year", b"\xff\x00".to_vec()),
        ("up", protobuf),
        ("up", b"{}".to_vec()),
        ("up", without("deviceInfo")),
        ("up", with("fPort", json!("two"))),
        ("up", with("data", json!("?"))),
        ("up", with("joinServerContext", json!({"sessionKeyId": "AQ=="}))),
        ("up", without("fPort")),
    ] {
        chirpstack.publish(&topic(DEVICE, event), payload.clone()).await;
        let message = application.next().await;
        assert_eq!((message.topic, &message.payload), (format!("airlock/{}", topic(DEVICE, event)), &payload));
    }
}

#[tokio::test]
async fn duplicates_are_dropped() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICE, SCRIPT);
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    let mut copy = uplink(DEVICE, 1, "AQID");
    copy["rxInfo"] = json!([]);
    send(&mut chirpstack, DEVICE, 1, "AQID").await;
    chirpstack.publish(&topic(DEVICE, "up"), copy.to_string()).await;
    for _ in 0..2 {
        chirpstack.publish(&topic(DEVICE, "status"), r#"{"margin":7}"#).await;
    }
    send(&mut chirpstack, DEVICE, 2, "AQID").await;
    assert_eq!(next_up(&mut application).await["fCnt"], 1);
    assert_eq!(application.next().await.kind(), "event/status");
    assert_eq!(next_up(&mut application).await["fCnt"], 2);
}

#[tokio::test]
async fn the_uplinks_of_a_device_keep_their_order() {
    let Some(network) = Network::start().await else { return };
    // The first one takes longest.
    let script = "function decodeUplink(input) {
        let n = 0; for (let i = 0; i < (300 - input.bytes[0]) * 100; i++) n += i;
        return {data: {n: input.bytes[0]}} }";
    for device in 0..4 {
        network.device(&format!("a30000000000000{device}"), script);
    }
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    for counter in 0..50 {
        for device in 0..4 {
            send(&mut chirpstack, &format!("a30000000000000{device}"), counter, "AQ==").await;
        }
    }
    let mut last = [None; 4];
    for _ in 0..200 {
        let up = next_up(&mut application).await;
        let device: usize = up["deviceInfo"]["devEui"].as_str().unwrap()[15..].parse().unwrap();
        let counter = up["fCnt"].as_u64().unwrap();
        assert_eq!(last[device].map_or(0, |last: u64| last + 1), counter);
        last[device] = Some(counter);
    }
    assert_eq!(last, [Some(49); 4]);
}

/// The body says which device it is, but access control at the broker has checked the topic only.
#[tokio::test]
async fn the_variables_of_another_device_stay_secret() {
    let Some(network) = Network::start().await else { return };
    let script = "function decodeUplink(input) { return {data: input.variables} }";
    network.device(DEVICE, script);
    network.api.set_device(DEVICE, DEVICE, &[("token", "hush")]);
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    let other_device = topic("a400000000000000", "up");
    let other_application = topic(DEVICE, "up").replace(CHIRPSTACK_APPLICATION, "00000000-0000-0000-0000-000000000000");
    for (counter, topic) in [(1, other_device), (2, other_application)] {
        chirpstack.publish(&topic, uplink(DEVICE, counter, "AQ==").to_string()).await;
        let (log, up) = next_log_and_up(&mut application).await;
        assert_eq!((&log["description"], up.get("object")), (&json!("the device is not that of the topic"), None));
    }
    send(&mut chirpstack, DEVICE, 3, "AQ==").await;
    assert_eq!(next_up(&mut application).await["object"], json!({"token": "hush"}));
}

#[tokio::test]
async fn an_object_of_the_network_stays_where_the_codec_is_not_known_or_none() {
    let Some(network) = Network::start().await else { return };
    network.api.set_profile(DEVICE, api::chirpstack::CodecRuntime::None, "");
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    let event = |dev_eui: &str| {
        let mut event = uplink(dev_eui, 1, "AQID");
        event["object"] = json!({"theirs": 1.5});
        event.to_string()
    };
    chirpstack.publish(&topic(DEVICE, "up"), event(DEVICE)).await;
    assert_eq!(next_up(&mut application).await["object"], json!({"theirs": 1.5}));
    let unknown = "a400000000000000";
    chirpstack.publish(&topic(unknown, "up"), event(unknown)).await;
    assert_eq!(next_log_and_up(&mut application).await.1["object"], json!({"theirs": 1.5}));
}

#[tokio::test]
async fn uplinks_with_an_empty_id_are_not_duplicates_of_each_other() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICE, SCRIPT);
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    for counter in 0..3 {
        let mut event = uplink(DEVICE, counter, "AQID");
        event["deduplicationId"] = json!("");
        chirpstack.publish(&topic(DEVICE, "up"), event.to_string()).await;
        assert_eq!(next_up(&mut application).await["fCnt"], counter);
    }
}
