//! Reports of The Things Stack about downlinks.

use serde_json::{Value, json};
use testing::MqttClient;

use crate::harness::{APPLICATION_ID, Network, javascript, topic};

const DECODER: &str = "function decodeDownlink(input) {
    if (!input.bytes.length) return {errors: ['empty']};
    return {data: {n: input.bytes[0], port: input.fPort}, warnings: input.bytes[1] ? ['two'] : []} }";
/// The kinds of messages, by the end of their topics, and the member with the downlink.
const KINDS: [(&str, &str); 5] = [
    ("down/queued", "downlink_queued"),
    ("down/sent", "downlink_sent"),
    ("down/ack", "downlink_ack"),
    ("down/nack", "downlink_nack"),
    ("down/failed", "downlink_failed"),
];

async fn start() -> Option<(Network, things_stack::ThingsStackBridge, MqttClient, MqttClient)> {
    let network = Network::start().await?;
    network.default_script("", DECODER);
    network.device("dev1");
    let bridge = network.bridge().await;
    let (things_stack, application) = (network.things_stack().await, network.application().await);
    Some((network, bridge, things_stack, application))
}

fn message(member: &str, downlink: &Value) -> Value {
    let inner = match member {
        "downlink_failed" => json!({"downlink": downlink, "error": {"code": 3}}),
        _ => downlink.clone(),
    };
    json!({"correlation_ids": ["mine"], member: inner})
}

/// Publishes a message about a downlink, and returns what applications receive.
async fn reported(
    things_stack: &mut MqttClient,
    application: &mut MqttClient,
    (device, kind): (&str, &str),
    message: &Value,
) -> Value {
    things_stack.publish(&topic(device, kind), message.to_string()).await;
    let received = application.next().await;
    assert_eq!(received.topic, topic(device, kind), "{}", String::from_utf8_lossy(&received.payload));
    received.json()
}

#[tokio::test]
async fn the_payload_of_a_downlink_is_decoded() {
    let Some((_network, _bridge, mut things_stack, mut application)) = start().await else { return };
    let downlink = json!({"f_port": 15, "frm_payload": "vu8=", "priority": "HIGH"});
    let mut decoded = downlink.clone();
    decoded["decoded_payload"] = json!({"n": 190, "port": 15});
    decoded["decoded_payload_warnings"] = json!(["two"]);
    for (kind, member) in KINDS {
        let sent = message(member, &downlink);
        let received = reported(&mut things_stack, &mut application, ("dev1", kind), &sent).await;
        assert_eq!(received, message(member, &decoded), "{kind}");
    }
}

#[tokio::test]
async fn what_no_formatter_can_read_stays_as_it_is() {
    let Some((network, _bridge, mut things_stack, mut application)) = start().await else { return };
    let encoder = "function encodeDownlink(input) { return {bytes: []} }";
    for (device, known) in [
        ("none", json!({"formatters": {}})),
        ("encoder", json!({"formatters": javascript("", encoder)})),
        ("encrypted", json!({"skip_payload_crypto_override": true})),
    ] {
        network.api.set_device(APPLICATION_ID, device, known);
        let sent = message("downlink_sent", &json!({"f_port": 1, "frm_payload": "AQ=="}));
        let received = reported(&mut things_stack, &mut application, (device, "down/sent"), &sent).await;
        assert_eq!(received, sent, "{device}");
    }
    // What an application queued itself.
    let own = json!({"f_port": 1, "frm_payload": "AQ==", "decoded_payload": {"own": 1}});
    let sent = message("downlink_queued", &own);
    assert_eq!(reported(&mut things_stack, &mut application, ("dev1", "down/queued"), &sent).await, sent);
}

#[tokio::test]
async fn an_encrypted_application_may_have_devices_that_are_not() {
    let Some((network, bridge, mut things_stack, mut application)) = start().await else { return };
    bridge.stop().await;
    network
        .api
        .set_link(APPLICATION_ID, json!({"default_formatters": javascript("", DECODER), "skip_payload_crypto": true}));
    network.api.set_device(APPLICATION_ID, "plain", json!({"skip_payload_crypto_override": false}));
    let _bridge = network.bridge().await;
    for (device, decoded) in [("dev1", None), ("plain", Some(json!({"n": 1, "port": 1})))] {
        let sent = message("downlink_ack", &json!({"f_port": 1, "frm_payload": "AQ=="}));
        let received = reported(&mut things_stack, &mut application, (device, "down/ack"), &sent).await;
        assert_eq!(received["downlink_ack"].get("decoded_payload"), decoded.as_ref(), "{device}");
    }
}

#[tokio::test]
async fn a_decoder_that_fails_is_reported_and_the_message_stays() {
    let Some((_network, _bridge, mut things_stack, mut application)) = start().await else { return };
    let sent = message("downlink_nack", &json!({"f_port": 1, "frm_payload": "", "decoded_payload": {"theirs": 1}}));
    things_stack.publish(&topic("dev1", "down/nack"), sent.to_string()).await;
    let report = application.next().await;
    assert_eq!(report.kind(), "service/data");
    let report = report.json();
    assert_eq!(report["correlation_ids"], json!(["mine"]));
    let data = &report["service_data"]["data"];
    assert_eq!((&data["event"], &data["function"]), (&json!("as.down.data.decode.fail"), &json!("decodeDownlink")));
    assert_eq!(application.next().await.json(), sent);
}

#[tokio::test]
async fn the_decoders_of_the_repository_and_of_cayenne_lpp_run_too() {
    let Some((mut network, bridge, mut things_stack, mut application)) = start().await else { return };
    bridge.stop().await;
    // Otherwise a refresh may find out that a device is gone before its message comes.
    network.settings.refresh_interval_ms = 3_600_000;
    let version = json!({"brand_id": "b", "model_id": "m", "firmware_version": "1.0", "band_id": "EU_863_870"});
    network.api.set_repository("b/m/1.0/EU_863_870/downlink/decoder", DECODER);
    let formatters = json!({"down_formatter": "FORMATTER_REPOSITORY"});
    network.api.set_device(APPLICATION_ID, "model", json!({"formatters": formatters, "version_ids": version}));
    network.api.set_device(APPLICATION_ID, "lpp", json!({"formatters": {"down_formatter": "FORMATTER_CAYENNELPP"}}));
    let mut bridge = network.bridge().await;
    for is_first in [true, false] {
        for (device, payload, decoded) in
            [("model", "Bw==", json!({"n": 7, "port": 3})), ("lpp", "AQPo", json!({"value_1": 10.0}))]
        {
            let sent = message("downlink_sent", &json!({"f_port": 3, "f_cnt": is_first, "frm_payload": payload}));
            let received = reported(&mut things_stack, &mut application, (device, "down/sent"), &sent).await;
            assert_eq!(received["downlink_sent"]["decoded_payload"], decoded, "{device}");
        }
        // What was imported is on disk.
        bridge.stop().await;
        network.api.remove_device(APPLICATION_ID, "model");
        bridge = network.bridge().await;
    }
}
