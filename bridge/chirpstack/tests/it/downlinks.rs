//! Commands of applications.

use serde_json::{Value, json};
use testing::{CHIRPSTACK_APPLICATION, Mosquitto, MqttClient};

use crate::harness::{Network, command_topic};

const DEVICE: &str = "ce01000000000000";
const SCRIPT: &str = "function decodeUplink() { return {data: {}} }
    function encodeDownlink(input) {
        if (input.data.fail) return {errors: ['e1', 'e2']};
        if (input.data.crash) throw new Error('enc');
        if (input.data.nothing) return {};
        return {bytes: [input.data.level, 255.9, 300, -1], fPort: input.data.port} }";

async fn start() -> Option<(Network, chirpstack::ChirpStackBridge, MqttClient, MqttClient)> {
    let network = Network::start().await?;
    network.device(DEVICE, SCRIPT);
    let bridge = network.bridge().await;
    let mut chirpstack = network.chirpstack().await;
    chirpstack.subscribe("application/+/device/+/command/down").await;
    let application = network.application().await;
    Some((network, bridge, chirpstack, application))
}

#[tokio::test]
async fn an_object_becomes_data_and_a_port() {
    let Some((_network, _bridge, mut chirpstack, mut application)) = start().await else { return };
    for (command, expected) in [
        (
            json!({"devEui": DEVICE, "fPort": 9, "confirmed": true, "object": {"level": 7}, "id": "i1", "new": 1.50}),
            json!({"devEui": DEVICE, "fPort": 9, "confirmed": true, "data": "B///AA==", "id": "i1", "new": 1.50}),
        ),
        // The encoder's port wins, and `object` over `data`.
        (
            json!({"devEui": DEVICE.to_uppercase(), "fPort": 9, "data": "AA==", "object": {"level": 1, "port": 12}}),
            json!({"devEui": DEVICE.to_uppercase(), "fPort": 12, "data": "Af//AA=="}),
        ),
        (
            json!({"dev_eui": DEVICE, "f_port": 9, "object": {"level": 1}}),
            json!({"dev_eui": DEVICE, "fPort": 9, "data": "Af//AA=="}),
        ),
        (
            json!({"devEui": DEVICE, "fPort": "9", "object": {"level": 1}}),
            json!({"devEui": DEVICE, "fPort": 9, "data": "Af//AA=="}),
        ),
        (json!({"devEui": DEVICE, "fPort": 9, "data": "Bw=="}), json!({"devEui": DEVICE, "fPort": 9, "data": "Bw=="})),
        (
            json!({"devEui": DEVICE, "fPort": 9, "data": "Bw", "confirmed": null, "fCntDown": "4"}),
            json!({"devEui": DEVICE, "fPort": 9, "data": "Bw", "confirmed": null, "fCntDown": "4"}),
        ),
    ] {
        application.publish(&command_topic(DEVICE), command.to_string()).await;
        // The application hears its own command, because it receives everything.
        assert_eq!(application.next().await.json(), command);
        let message = chirpstack.next().await;
        assert_eq!(message.topic, format!("application/{CHIRPSTACK_APPLICATION}/device/{DEVICE}/command/down"));
        let mut forwarded = message.json();
        assert_eq!(forwarded.as_object_mut().unwrap().remove("airlockBridge"), Some(json!(true)));
        assert_eq!(forwarded, expected);
    }
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_with_a_log_event() {
    let Some((network, _bridge, mut chirpstack, mut application)) = start().await else { return };
    network.device("ce02000000000000", "function decodeUplink() { return {data: {}} }");
    network.api.set_profile("none", api::chirpstack::CodecRuntime::None, "");
    network.api.set_device("ce03000000000000", "none", &[]);
    let topic = command_topic(DEVICE);
    for (topic, command, reason) in [
        (
            topic.clone(),
            json!({"devEui": DEVICE, "fPort": 9, "object": {"fail": 1}}),
            "encodeDownlink returned errors: e1, e2",
        ),
        (
            topic.clone(),
            json!({"devEui": DEVICE, "fPort": 9, "object": {"crash": 1}}),
            "encodeDownlink: the encoder failed (line 4",
        ),
        (
            topic.clone(),
            json!({"devEui": DEVICE, "fPort": 9, "object": {"nothing": 1}}),
            "encodeDownlink did not return 'bytes'",
        ),
        (topic.clone(), json!({"devEui": DEVICE, "object": {"level": 1}}), "no port"),
        (topic.clone(), json!({"devEui": DEVICE, "fPort": 0, "object": {"level": 1}}), "no port"),
        (topic.clone(), json!({"devEui": DEVICE, "fPort": 300, "object": {"level": 1}}), "`fPort` is 300: it must be"),
        (topic.clone(), json!({"devEui": DEVICE, "fPort": "x", "object": {"level": 1}}), "`fPort` is \"x\""),
        (
            topic.clone(),
            json!({"devEui": "0000000000000001", "fPort": 9, "data": "AQ=="}),
            "`devEui` is 0000000000000001",
        ),
        (topic.clone(), json!({"fPort": 9, "data": "AQ=="}), "`devEui` is missing"),
        (
            topic.clone(),
            json!({"devEui": DEVICE, "fPort": 9, "data": "AQ==", "confirmed": "true"}),
            "`confirmed` is \"true\": it must be true or false",
        ),
        (topic.clone(), json!({"devEui": DEVICE, "fPort": 9, "data": [1]}), "`data` is [1]: it must be Base64"),
        (topic.clone(), json!({"devEui": DEVICE, "fPort": 9, "data": "AQ==", "id": 7}), "`id` is 7: it must be a text"),
        (topic.clone(), json!({"devEui": DEVICE, "fPort": true, "data": "AQ=="}), "`fPort` is true: it must be"),
        (topic.clone(), json!({"devEui": DEVICE, "fPort": 9, "object": [1]}), "`object` is [1]: it must be an object"),
        (topic.clone(), json!([]), "not a JSON object"),
        (
            command_topic("ce02000000000000"),
            json!({"devEui": "ce02000000000000", "fPort": 9, "object": {}}),
            "encodeDownlink",
        ),
        (
            command_topic("ce03000000000000"),
            json!({"devEui": "ce03000000000000", "fPort": 9, "object": {}}),
            "the device profile has no codec",
        ),
        (
            command_topic("ce04000000000000"),
            json!({"devEui": "ce04000000000000", "fPort": 9, "object": {}}),
            "the codec is not known: ChirpStack has no device ce04000000000000",
        ),
        (
            topic.replace(CHIRPSTACK_APPLICATION, "00000000-0000-0000-0000-000000000000"),
            json!({"devEui": DEVICE, "fPort": 9, "object": {"level": 1}}),
            "another application",
        ),
    ] {
        let sent: Value = command;
        application.publish(&topic, sent.to_string()).await;
        assert_eq!(application.next().await.json(), sent);
        let message = application.next().await;
        assert_eq!(message.topic, topic.replace("command/down", "event/log"));
        let log = message.json();
        assert_eq!((&log["level"], &log["code"]), (&json!("ERROR"), &json!("DOWNLINK_CODEC")));
        assert!(log["description"].as_str().unwrap().contains(reason), "{sent}: {log}");
        assert!(topic.contains(log["deviceInfo"]["devEui"].as_str().unwrap()), "{log}");
    }
    // Nothing of it reached ChirpStack.
    application.publish(&topic, json!({"devEui": DEVICE, "fPort": 1, "data": "AQ=="}).to_string()).await;
    assert_eq!(chirpstack.next().await.json()["fPort"], 1);
}

/// The same broker by two ports is not recognized as such, and the topics are the same.
#[tokio::test]
async fn a_command_does_not_go_round_in_circles() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let Some(broker) = Mosquitto::start_with(&format!("allow_anonymous true\nlistener {port} 127.0.0.1")) else {
        return;
    };
    let mut network = Network::with_broker(broker).await.unwrap();
    network.device(DEVICE, SCRIPT);
    network.settings.to.url = format!("mqtt://127.0.0.1:{port}");
    let _bridge = network.bridge().await;
    let mut chirpstack = network.chirpstack().await;
    chirpstack.subscribe("#").await;
    let topic = format!("application/{CHIRPSTACK_APPLICATION}/device/{DEVICE}/command/down");
    chirpstack.publish(&topic, json!({"devEui": DEVICE, "fPort": 9, "data": "Bw=="}).to_string()).await;
    assert_eq!(chirpstack.next().await.json().get("airlockBridge"), None);
    assert_eq!(chirpstack.next().await.json()["airlockBridge"], true);
    // Were it forwarded again, that would come before the answer to a second command.
    chirpstack.publish(&topic, json!({"devEui": DEVICE, "fPort": 8, "data": "Bw=="}).to_string()).await;
    for mark in [None, Some(&json!(true))] {
        let command = chirpstack.next().await.json();
        assert_eq!((&command["fPort"], command.get("airlockBridge")), (&json!(8), mark));
    }
}

#[tokio::test]
async fn a_refusal_says_nothing_about_a_device_of_another_application() {
    let Some((_network, _bridge, _chirpstack, mut application)) = start().await else { return };
    let topic = command_topic(DEVICE).replace(CHIRPSTACK_APPLICATION, "00000000-0000-0000-0000-000000000000");
    for command in [json!({"devEui": DEVICE, "fPort": 9, "object": {"level": 1}}), json!([])] {
        application.publish(&topic, command.to_string()).await;
        application.next().await;
        let info = application.next().await.json()["deviceInfo"].clone();
        for member in ["tenantId", "deviceProfileId", "deviceProfileName", "deviceName"] {
            assert_eq!(info[member], "", "{info}");
        }
    }
}
