//! Uplinks: the messages and events that an application receives.

use serde_json::json;

use crate::harness::{MESSAGE_TIMEOUT, Network, next};

// Conformance: The handler registers applications, stores functions and devices
#[tokio::test(flavor = "multi_thread")]
async fn an_uplink_has_the_format_of_v2() {
    let network = Network::start().await;
    let owner = network.owner("shape").await;
    owner.set_functions(["function Decoder(bytes, port) { return { b: bytes[0], a: port }; }", "", ""]).await.unwrap();
    owner.add_device("dev-1").await;
    let mut listener = owner.listen(&network).await;
    owner.simulate("dev-1", &[1, 2], 7).await.unwrap();
    let (topic, mut uplink) = next(&mut listener).await;
    assert_eq!(topic, "dev-1/up");
    let time = uplink["metadata"]["time"].take();
    assert!(time.as_str().is_some_and(|time| time.ends_with('Z')), "{time}");
    let expected = json!({
        "app_id": "shape-app", "dev_id": "dev-1", "port": 7, "counter": 0, "payload_raw": "AQI=",
        "payload_fields": {"b": 1, "a": 7}, "metadata": {"time": null},
    });
    assert_eq!(uplink, expected);
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lone_surrogates_are_published_as_escapes() {
    let network = Network::start().await;
    let owner = network.owner("surrogates").await;
    let decoder = r"function Decoder() { return { s: '\ud800', '\udfff': 1 }; }";
    owner.set_functions([decoder, "", ""]).await.unwrap();
    owner.add_device("dev-1").await;
    let mut listener = owner.listen(&network).await;
    owner.simulate("dev-1", &[1], 1).await.unwrap();
    let message = tokio::time::timeout(MESSAGE_TIMEOUT, listener.next()).await.expect("a message arrives");
    let text = String::from_utf8(message.payload.to_vec()).unwrap();
    assert!(text.contains(r#""payload_fields":{"s":"\ud800","\udfff":1}"#), "{text}");
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_function_loses_the_fields_but_not_the_message() {
    let network = Network::start().await;
    let owner = network.owner("failing").await;
    owner.add_device("dev-1").await;
    let mut listener = owner.listen(&network).await;
    for (decoder, complaint) in [
        ("function Decoder(bytes) {\n  return bytes.no.such;\n}", "line 2"),
        ("function Decoder(bytes) {\n  while (true) {}\n}", "fuel"),
        ("function Decoder(bytes) { return 'text'; }", "object"),
    ] {
        owner.set_functions([decoder, "", ""]).await.unwrap();
        owner.simulate("dev-1", &[1], 1).await.unwrap();
        let (topic, uplink) = next(&mut listener).await;
        assert_eq!(topic, "dev-1/up");
        assert_eq!((&uplink["payload_fields"], &uplink["payload_raw"]), (&json!(null), &json!("AQ==")));
        let (topic, event) = next(&mut listener).await;
        assert_eq!(topic, "dev-1/events/up/errors", "{event}");
        let error = event["error"].as_str().unwrap();
        assert!(error.starts_with("Unable to decode payload fields: ") && error.contains(complaint), "{error}");
        assert_eq!(event["time"], uplink["metadata"]["time"]);
    }
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_validator_that_returns_false_drops_the_message() {
    let network = Network::start().await;
    let owner = network.owner("choosy").await;
    let functions = [
        "function Decoder(bytes) { return { n: bytes[0] }; }",
        "function Converter(decoded) { decoded.n *= 2; return decoded; }",
        "function Validator(converted) { return converted.n < 10; }",
    ];
    owner.set_functions(functions).await.unwrap();
    owner.add_device("dev-1").await;
    let mut listener = owner.listen(&network).await;
    let refused = owner.simulate("dev-1", &[5], 1).await.unwrap_err();
    assert!(refused.to_string().contains("validator function returned false"), "{refused}");
    let (topic, event) = next(&mut listener).await;
    assert_eq!(topic, "dev-1/events/up/errors");
    assert_eq!(event["error"], "Payload not valid: payload validator function returned false");
    owner.simulate("dev-1", &[4], 1).await.unwrap();
    let (topic, uplink) = next(&mut listener).await;
    assert_eq!((topic.as_str(), &uplink["payload_fields"]), ("dev-1/up", &json!({"n": 8})));
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn publishes_the_normalized_payload_beside_the_fields() {
    let network = Network::start().await;
    let owner = network.owner("normal").await;
    let decoder = "function decodeUplink(input) { return { data: { t: input.bytes[0] } }; }
        function normalizeUplink(input) { return { data: [{ air: { temperature: input.data.t } }] }; }";
    owner.set_functions([decoder, "", ""]).await.unwrap();
    owner.add_device("dev-1").await;
    let mut listener = owner.listen(&network).await;
    owner.simulate("dev-1", &[21], 1).await.unwrap();
    let (_, uplink) = next(&mut listener).await;
    assert_eq!(uplink["payload_fields"], json!({"t": 21}));
    assert_eq!(uplink["normalized_payload"], json!([{"air": {"temperature": 21}}]));
    network.stack.stop().await;
}

// Conformance: `custom`, `cayennelpp`, and unknown formats
#[tokio::test(flavor = "multi_thread")]
async fn cayenne_lpp_needs_no_function() {
    let network = Network::start().await;
    let owner = network.owner("cayenne").await;
    let mut application = owner.handler.get_application(&owner.app_id).await.unwrap();
    application.payload_format = "cayennelpp".to_owned();
    owner.handler.set_application(application).await.unwrap();
    owner.add_device("dev-1").await;
    let mut listener = owner.listen(&network).await;
    owner.simulate("dev-1", &[0x07, 0x67, 0x00, 0xf5], 99).await.unwrap();
    assert_eq!(next(&mut listener).await.1["payload_fields"], json!({"temperature_7": 24.5}));
    owner.simulate("dev-1", &[0x07, 0x67, 0x00], 99).await.unwrap();
    assert_eq!(next(&mut listener).await.1["payload_fields"], json!(null));
    let (topic, event) = next(&mut listener).await;
    assert_eq!(topic, "dev-1/events/up/errors");
    assert!(event["error"].as_str().unwrap().contains("Cayenne LPP"), "{event}");
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_payload_format_selects_the_calling_convention() {
    let network = Network::start().await;
    let owner = network.owner("styles").await;
    let decoder = "function decodeUplink() { return { data: { is: 'ts013' } }; }
        function Decoder() { return { is: 'v2' }; } function Decode() { return { is: 'chirpstack3' }; }";
    let converter = "function Converter(decoded) { decoded.converted = true; return decoded; }";
    owner.set_functions([decoder, converter, ""]).await.unwrap();
    owner.add_device("dev-1").await;
    let mut listener = owner.listen(&network).await;
    for (format, style) in [("custom", "ts013"), ("ts013", "ts013"), ("v2", "v2"), ("chirpstack3", "chirpstack3")] {
        let mut application = owner.handler.get_application(&owner.app_id).await.unwrap();
        application.payload_format = format.to_owned();
        owner.handler.set_application(application).await.unwrap();
        owner.simulate("dev-1", &[1], 1).await.unwrap();
        assert_eq!(next(&mut listener).await.1["payload_fields"], json!({"is": style, "converted": true}), "{format}");
    }
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_can_have_its_own_limits() {
    let network = Network::with(|settings| {
        let limits = serde_json::from_value(json!({"fuel": 200_000})).unwrap();
        settings.handler.sandbox_limits.insert("frugal-app".parse().unwrap(), limits);
    })
    .await;
    let busy = "function Decoder(bytes) { for (var i = 0; i < 20000; i++) {} return { i: i }; }";
    for (name, fields) in [("frugal", json!(null)), ("usual", json!({"i": 20000}))] {
        let owner = network.owner(name).await;
        owner.set_functions([busy, "", ""]).await.unwrap();
        owner.add_device("dev-1").await;
        let mut listener = owner.listen(&network).await;
        owner.simulate("dev-1", &[1], 1).await.unwrap();
        assert_eq!(next(&mut listener).await.1["payload_fields"], fields, "{name}");
        if fields.is_null() {
            let (_, event) = next(&mut listener).await;
            assert!(event["error"].as_str().unwrap().contains("used up its fuel"), "{event}");
        }
    }
    network.stack.stop().await;
}

// Conformance: `custom`, `cayennelpp`, and unknown formats
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_format_is_stored_and_converts_nothing() {
    let network = Network::start().await;
    let owner = network.owner("verbatim").await;
    let mut application = owner.handler.get_application(&owner.app_id).await.unwrap();
    application.payload_format = "cayenne".to_owned();
    owner.handler.set_application(application).await.unwrap();
    assert_eq!(owner.handler.get_application(&owner.app_id).await.unwrap().payload_format, "cayenne");
    owner.add_device("dev-1").await;
    let mut listener = owner.listen(&network).await;
    owner.simulate("dev-1", &[1], 1).await.unwrap();
    assert_eq!(next(&mut listener).await.1["payload_fields"], json!(null));
    network.stack.stop().await;
}
