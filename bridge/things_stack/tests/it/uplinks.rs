//! Handling of messages, apart from decoding.

use serde_json::json;
use testing::{MqttClient, things_stack_uplink};

use crate::harness::{APPLICATION_ID, Network, javascript, next_report_and_up, next_up, send, topic};

const SCRIPT: &str =
    "function decodeUplink(input) { return {data: {n: input.bytes[0]}, warnings: input.bytes[1] ? ['two'] : []} }
    function normalizeUplink(input) { return {data: {air: {temperature: input.data.n}}} }";

async fn start() -> Option<(Network, things_stack::ThingsStackBridge, MqttClient, MqttClient)> {
    let network = Network::start().await?;
    network.default_script(SCRIPT, "");
    network.device("dev1");
    let bridge = network.bridge().await;
    let (things_stack, application) = (network.things_stack().await, network.application().await);
    Some((network, bridge, things_stack, application))
}

#[tokio::test]
async fn an_uplink_keeps_its_topic_and_everything_but_what_is_decoded() {
    let Some((_network, _bridge, mut things_stack, mut application)) = start().await else { return };
    // Numbers keep their digits, and members that nobody knows yet their place.
    let message = things_stack_uplink("dev1", 1, "AQID").to_string().replace("5.2", "5.200");
    let message = message.replacen('{', "{\"new\":[1e3],", 1);
    things_stack.publish(&topic("dev1", "up"), message.clone()).await;
    let received = application.next().await;
    assert_eq!(received.topic, topic("dev1", "up"));
    let decoded = r#""frm_payload":"AQID","decoded_payload":{"n":1},"decoded_payload_warnings":["two"],"normalized_payload":[{"air":{"temperature":1}}]"#;
    let expected = message.replace(r#""frm_payload":"AQID""#, decoded);
    assert_eq!(String::from_utf8(received.payload).unwrap(), expected);
}

#[tokio::test]
async fn measurements_are_checked_and_those_of_a_decoder_without_a_normalizer_count_too() {
    let Some((network, _bridge, mut things_stack, mut application)) = start().await else { return };
    let normalizer = "function decodeUplink(input) { return {data: {n: input.bytes[0]}} }
        function normalizeUplink(input) {
            return {data: [{air: {temperature: input.data.n, smell: 1}}, {soil: {pH: 15}}]} }";
    let decoder = "function decodeUplink(input) { return {data: {air: {relativeHumidity: input.bytes[0]}}} }";
    let other = "function decodeUplink(input) { return {data: {relativeHumidity: input.bytes[0]}} }";
    let lost = "function decodeUplink(input) { return {data: {battery: 1}} } function normalizeUplink() { return {} }";
    for (device, script, measurements, warnings) in [
        (
            "normalizer",
            normalizer,
            json!([{"air": {"temperature": 7}}]),
            json!([
                "measurement 1: unknown field `air.smell`",
                "measurement 2: `soil.pH` should be equal or less than `14`"
            ]),
        ),
        ("decoder", decoder, json!([{"air": {"relativeHumidity": 7}}]), json!(null)),
        ("other", other, json!(null), json!(null)),
        ("lost", lost, json!(null), json!(null)),
    ] {
        network.api.set_device(APPLICATION_ID, device, json!({"formatters": javascript(script, "")}));
        send(&mut things_stack, device, 1, "Bw==").await;
        let up = next_up(&mut application).await;
        let up = &up["uplink_message"];
        let found = (&up["normalized_payload"], &up["normalized_payload_warnings"]);
        assert_eq!(found, (&measurements, &warnings), "{device}");
        assert!(up["decoded_payload"].is_object(), "{device}");
    }
}

#[tokio::test]
async fn other_messages_and_what_cannot_be_decoded_pass_unchanged() {
    let Some((_network, _bridge, mut things_stack, mut application)) = start().await else { return };
    let without = |member: &str| {
        let mut message = things_stack_uplink("dev1", 1, "AQID");
        message["uplink_message"].as_object_mut().unwrap().remove(member);
        message.to_string().into_bytes()
    };
    let with = |member: &str, value: serde_json::Value| {
        let mut message = things_stack_uplink("dev1", 2, "AQID");
        message["uplink_message"][member] = value;
        message.to_string().into_bytes()
    };
    for (kind, payload) in [
        ("join", br#"{"join_accept":{"session_key_id":"AX=="}}"#.to_vec()),
        ("down/ack", br#"{"downlink_ack":{"f_port":1}}"#.to_vec()),
        ("up/normalized", br#"{"uplink_normalized":{}}"#.to_vec()),
        ("up", b"\x0a\x24protobuf\xff".to_vec()),
        ("up", b"{}".to_vec()),
        ("up", b"not json".to_vec()),
        ("up", with("f_port", json!("two"))),
        ("up", with("frm_payload", json!("?"))),
        ("up", with("app_s_key", json!({"encrypted_key": "AQ=="}))),
        ("up", without("f_port")),
    ] {
        things_stack.publish(&topic("dev1", kind), payload.clone()).await;
        let message = application.next().await;
        assert_eq!((message.topic, &message.payload), (topic("dev1", kind), &payload));
    }
}

#[tokio::test]
async fn duplicates_are_dropped() {
    let Some((_network, _bridge, mut things_stack, mut application)) = start().await else { return };
    let mut copy = things_stack_uplink("dev1", 1, "AQ==");
    copy["uplink_message"]["rx_metadata"] = json!([]);
    send(&mut things_stack, "dev1", 1, "AQ==").await;
    things_stack.publish(&topic("dev1", "up"), copy.to_string()).await;
    send(&mut things_stack, "dev1", 2, "AQ==").await;
    for counter in [1, 2] {
        assert_eq!(next_up(&mut application).await["uplink_message"]["f_cnt"], counter);
    }
}

#[tokio::test]
async fn the_uplinks_of_a_device_keep_their_order() {
    let Some((network, _bridge, mut things_stack, mut application)) = start().await else { return };
    (0..4).for_each(|device| network.device(&format!("dev{device}")));
    for counter in 0..50 {
        for device in 0..4 {
            send(&mut things_stack, &format!("dev{device}"), counter, "AQ==").await;
        }
    }
    let mut next = [0; 4];
    for _ in 0..200 {
        let up = next_up(&mut application).await;
        let device: usize = up["end_device_ids"]["device_id"].as_str().unwrap()[3..].parse().unwrap();
        assert_eq!(up["uplink_message"]["f_cnt"], next[device]);
        next[device] += 1;
    }
    assert_eq!(next, [50; 4]);
}

/// As in The Things Stack: the uplink has no decoded payload. Why is what its Console shows as an event.
#[tokio::test]
async fn a_formatter_that_fails_is_reported() {
    let Some((network, _bridge, mut things_stack, mut application)) = start().await else { return };
    for (device, script, reason, message) in [
        ("throws", "function decodeUplink() {\n throw new Error('broken') }", "thrown", "broken"),
        ("errors", "function decodeUplink() { return {errors: ['low', 'lower']} }", "thrown", "low; lower"),
        ("endless", "function decodeUplink() { for (;;) {} }", "fuel", "fuel"),
        ("syntax", "function decodeUplink( {", "syntax", "cannot be loaded"),
        ("nothing", "var x = 1", "syntax", "decode"),
    ] {
        network.api.set_device(
            "sensors",
            device,
            json!({"formatters": {"up_formatter": "FORMATTER_JAVASCRIPT", "up_formatter_parameter": script}}),
        );
        let mut uplink = things_stack_uplink(device, 1, "AQ==");
        uplink["uplink_message"]["decoded_payload"] = json!({"theirs": 1});
        things_stack.publish(&topic(device, "up"), uplink.to_string()).await;
        let (report, up) = next_report_and_up(&mut application).await;
        assert_eq!(up["uplink_message"].get("decoded_payload"), None, "{device}");
        assert_eq!(report["service"], "airlock");
        let failure = &report["data"];
        assert_eq!((&failure["event"], &failure["reason"]), (&json!("as.up.data.decode.fail"), &json!(reason)));
        assert!(failure["message"].as_str().unwrap().contains(message), "{failure}");
    }
    // The others go on.
    send(&mut things_stack, "dev1", 1, "AQ==").await;
    assert_eq!(next_up(&mut application).await["uplink_message"]["decoded_payload"], json!({"n": 1}));
}

#[tokio::test]
async fn an_unknown_device_is_reported_and_keeps_what_the_network_decoded() {
    let Some((_network, _bridge, mut things_stack, mut application)) = start().await else { return };
    let mut uplink = things_stack_uplink("deleted", 1, "AQ==");
    uplink["uplink_message"]["decoded_payload"] = json!({"theirs": 1.5});
    things_stack.publish(&topic("deleted", "up"), uplink.to_string()).await;
    let (report, up) = next_report_and_up(&mut application).await;
    assert!(report["data"]["message"].as_str().unwrap().contains("no device sensors@lab/deleted"), "{report}");
    assert_eq!(up["uplink_message"]["decoded_payload"], json!({"theirs": 1.5}));
}

/// The bridge itself would take it for one of an application.
#[tokio::test]
async fn a_downlink_that_comes_from_the_network_goes_nowhere() {
    let Some((network, _bridge, mut things_stack, mut application)) = start().await else { return };
    application.subscribe("v3/+/devices/+/down/push").await;
    let downlinks = json!({"downlinks": [{"f_port": 1, "frm_payload": "AQ=="}]}).to_string();
    things_stack.publish(&topic("dev1", "down/push"), downlinks).await;
    send(&mut things_stack, "dev1", 1, "AQ==").await;
    assert_eq!(next_up(&mut application).await["uplink_message"]["f_cnt"], 1);
    assert_eq!(network.api.next_downlink(), None);
}
