//! Inputs of codecs, and handling of their results.

use api::chirpstack::CodecRuntime;
use serde_json::json;

use crate::harness::{Network, device_info, next_log_and_up, next_up, send};

const DEVICE: &str = "a300000000000000";

#[tokio::test]
async fn a_codec_gets_what_chirpstack_gives_it() {
    let Some(network) = Network::start().await else { return };
    let script = "function decodeUplink(input) { return {data: {
        bytes: input.bytes, port: input.fPort, isDate: input.recvTime instanceof Date,
        time: input.recvTime.toISOString(), variables: input.variables}} }";
    network.api.set_profile(DEVICE, CodecRuntime::Js, script);
    network.api.set_device(DEVICE, DEVICE, &[("offset", "0.5")]);
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    send(&mut chirpstack, DEVICE, 1, "AQID").await;
    let expected = json!({
        "bytes": [1, 2, 3], "port": 2, "isDate": true, "time": "2026-11-22T16:45:55.231Z",
        "variables": {"offset": "0.5"},
    });
    assert_eq!(next_up(&mut application).await["object"], expected);
}

/// ChirpStack writes null there, too.
#[tokio::test]
async fn a_big_integer_costs_only_its_own_field() {
    let Some(network) = Network::start().await else { return };
    let script = "function decodeUplink() { return {data: {n: 1, big: 2n, list: [3n, 4]}} }";
    network.device(DEVICE, script);
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    send(&mut chirpstack, DEVICE, 1, "AQID").await;
    assert_eq!(next_up(&mut application).await["object"], json!({"n": 1, "big": null, "list": [null, 4]}));
}

#[tokio::test]
async fn a_failure_is_a_log_event_and_the_uplink_has_no_object() {
    let Some(network) = Network::start().await else { return };
    let script = |body: &str| format!("function decodeUplink(input) {{\n{body}\n}}");
    let cases = [
        ("return nowhere;", "decodeUplink: the decoder failed (line 2", "thrown"),
        ("return {errors: ['a', 'b']};", "decodeUplink returned errors: a, b", "errors"),
        ("return {};", "decodeUplink did not return 'data'", "errors"),
        ("return {data: [1]};", "decodeUplink did not return 'data'", "errors"),
        ("return 'text';", "decodeUplink did not return 'data'", "errors"),
        ("while (true) {}", "decodeUplink: the decoder used up its fuel", "fuel"),
        ("return {data: {", "decodeUplink: the decoder cannot be loaded", "syntax"),
    ];
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    for (number, (body, description, reason)) in cases.into_iter().enumerate() {
        let dev_eui = format!("a30000000000000{number}");
        network.device(&dev_eui, &script(body));
        send(&mut chirpstack, &dev_eui, 1, "AQID").await;
        let (log, up) = next_log_and_up(&mut application).await;
        assert!(log["description"].as_str().unwrap().starts_with(description), "{body}: {log}");
        assert_eq!((&log["level"], &log["code"]), (&json!("ERROR"), &json!("UPLINK_CODEC")), "{log}");
        assert_eq!(log["deviceInfo"], device_info(&dev_eui));
        assert_eq!(log["context"]["deduplication_id"], up["deduplicationId"]);
        assert_eq!(log["context"]["function"], "decodeUplink");
        assert_eq!(log["context"]["reason"], reason, "{body}: {log}");
        assert_eq!(up.get("object"), None, "{body}: {up}");
    }
}

#[tokio::test]
async fn warnings_are_a_log_event_and_the_object_is_published() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICE, "function decodeUplink() { return {data: {x: 1}, warnings: ['low battery']} }");
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    send(&mut chirpstack, DEVICE, 1, "AQID").await;
    let (log, up) = next_log_and_up(&mut application).await;
    assert_eq!((&log["level"], &log["code"]), (&json!("WARNING"), &json!("UPLINK_CODEC")));
    assert_eq!(log["description"], "decodeUplink returned warnings: low battery");
    assert_eq!(up["object"], json!({"x": 1}));
}

/// ChirpStack ignores `errors` and `warnings` that are no arrays of strings.
#[tokio::test]
async fn errors_of_another_type_are_ignored() {
    let Some(network) = Network::start().await else { return };
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    for (number, errors) in ["'e'", "[1]", "[{}]", "[]", "null"].into_iter().enumerate() {
        let dev_eui = format!("a30000000000000{number}");
        network.device(&dev_eui, &format!("function decodeUplink() {{ return {{data: {{x: 1}}, errors: {errors}}} }}"));
        send(&mut chirpstack, &dev_eui, 1, "AQID").await;
        assert_eq!(next_up(&mut application).await["object"], json!({"x": 1}), "{errors}");
    }
}

#[tokio::test]
async fn runtimes_other_than_javascript_decode_too() {
    let Some(network) = Network::start().await else { return };
    let script = "function decodeUplink() { return {data: {x: 1}} }";
    let cases = [
        (CodecRuntime::CayenneLpp, "", Some(json!({"temperatureSensor": {"3": 27.2}}))),
        (CodecRuntime::None, "", None),
        // ChirpStack keeps the script when its own decoding is switched off.
        (CodecRuntime::None, script, Some(json!({"x": 1}))),
    ];
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    for (number, (runtime, script, object)) in cases.into_iter().enumerate() {
        let dev_eui = format!("a30000000000000{number}");
        network.api.set_profile(&dev_eui, runtime, script);
        network.api.set_device(&dev_eui, &dev_eui, &[]);
        send(&mut chirpstack, &dev_eui, 1, "A2cBEA==").await;
        assert_eq!(next_up(&mut application).await.get("object"), object.as_ref(), "{runtime:?} {script}");
    }
}

#[tokio::test]
async fn a_codec_that_never_ends_does_not_hold_up_other_profiles() {
    let Some(network) = Network::start().await else { return };
    network.device("0000000000000bad", "function decodeUplink() { while (true) {} }");
    network.device(DEVICE, "function decodeUplink(input) { return {data: {n: input.bytes[0]}} }");
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    for counter in 0..200 {
        send(&mut chirpstack, "0000000000000bad", counter, "AQ==").await;
    }
    send(&mut chirpstack, DEVICE, 1, "AQ==").await;
    let mut before = 0;
    loop {
        let message = application.next().await;
        if message.topic.contains(DEVICE) {
            assert_eq!(message.json()["object"], json!({"n": 1}));
            break;
        }
        before += usize::from(message.kind() == "event/up");
    }
    assert!(before < 200, "it waited for all messages of the other profile");
    // Those of the faulty one come too, without an object.
    while before < 200 {
        let message = application.next().await;
        if message.kind() == "event/up" {
            assert_eq!(message.json().get("object"), None);
            before += 1;
        }
    }
}
