//! ChirpStack's API: wrong settings, changes, and a start without it.

use api::chirpstack::CodecRuntime;
use serde_json::{Value, json};
use testing::{MqttClient, Proxy, soon};

use crate::harness::{Network, next_log_and_up, next_up, send};

const DEVICE: &str = "a300000000000000";

fn script(version: u32) -> String {
    format!("function decodeUplink(input) {{ return {{data: {{version: {version}, variables: input.variables}}}} }}")
}

/// Sends uplinks of a device that was heard before until one of them comes with the expected object.
async fn until_object(
    (chirpstack, application): (&mut MqttClient, &mut MqttClient),
    dev_eui: &str,
    is_expected: impl Fn(&Value) -> bool,
) {
    let mut counter = 1;
    let changed = async {
        loop {
            counter += 1;
            send(chirpstack, dev_eui, counter, "AQ==").await;
            if is_expected(&next_up(application).await["object"]) {
                return;
            }
        }
    };
    soon("the change", changed).await;
}

/// Sends uplinks of a device that was heard before until something is reported about it.
async fn until_log((chirpstack, application): (&mut MqttClient, &mut MqttClient), dev_eui: &str) -> Value {
    let mut counter = 1;
    let reported = async {
        loop {
            counter += 1;
            send(chirpstack, dev_eui, counter, "AQ==").await;
            let message = application.next().await;
            if message.kind() == "event/log" {
                return message.json();
            }
        }
    };
    soon("the report", reported).await
}

#[tokio::test]
async fn a_start_with_wrong_settings_says_what_to_do() {
    let Some(mut network) = Network::start().await else { return };
    let right = network.settings.clone();
    network.settings.grpc.url = "http://127.0.0.1:1".to_owned();
    let text = network.refusal().await;
    assert!(text.contains("cannot reach the ChirpStack API at 127.0.0.1:1: check that it runs there"), "{text}");

    // A server that speaks something else.
    network.settings.grpc.url = format!("http://{}", network.broker.address());
    let text = network.refusal().await;
    assert!(text.contains("cannot use ChirpStack's API"), "{text}");

    network.settings = right.clone();
    let token_file = network.dir.path().join("wrong");
    std::fs::write(&token_file, "wrong").unwrap();
    network.settings.grpc.token_file = Some(token_file);
    let text = network.refusal().await;
    assert!(text.contains("does not accept the API key in `") && text.contains("/wrong`"), "{text}");

    network.settings.grpc.token_file = Some(network.dir.path().join("missing"));
    let text = network.refusal().await;
    assert!(text.contains("cannot read `") && text.contains("/missing`"), "{text}");

    network.settings = right.clone();
    network.settings.mqtt.url = String::new();
    let text = network.refusal().await;
    assert!(text.contains("give the broker's URL, such as mqtt://localhost:1883, with --mqtt"), "{text}");

    // The same broker by another name, and no prefix.
    network.settings = right.clone();
    network.settings.to.url = network.broker.url().replace("127.0.0.1", "localhost");
    network.settings.to_prefix = Some(String::new());
    let text = network.refusal().await;
    assert!(text.contains("to_prefix` not valid: must not be empty"), "{text}");
}

#[tokio::test]
async fn changes_are_followed() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICE, &script(1));
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    send(&mut chirpstack, DEVICE, 0, "AQ==").await;
    assert_eq!(next_up(&mut application).await["object"], json!({"version": 1, "variables": {}}));
    network.device(DEVICE, &script(2));
    network.api.set_device(DEVICE, DEVICE, &[("k", "v")]);
    let expected = json!({"version": 2, "variables": {"k": "v"}});
    until_object((&mut chirpstack, &mut application), DEVICE, |object| *object == expected).await;
}

#[tokio::test]
async fn a_deleted_profile_is_reported_while_its_uplinks_flow() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICE, &script(1));
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    send(&mut chirpstack, DEVICE, 0, "AQ==").await;
    next_up(&mut application).await;
    network.api.delete_profile(DEVICE);
    let log = until_log((&mut chirpstack, &mut application), DEVICE).await;
    let description = log["description"].as_str().unwrap();
    assert!(description.contains("ChirpStack has no device profile a300000000000000: it was deleted"), "{log}");
    assert_eq!(next_up(&mut application).await.get("object"), None);
}

#[tokio::test]
async fn a_profile_that_cannot_be_fetched_does_not_stop_other_changes() {
    let Some(network) = Network::start().await else { return };
    let other = "b300000000000000";
    network.device(DEVICE, &script(1));
    network.device(other, &script(1));
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    for device in [DEVICE, other] {
        send(&mut chirpstack, device, 0, "AQ==").await;
        assert_eq!(next_up(&mut application).await["object"]["version"], 1);
    }
    network.api.break_profile(DEVICE);
    network.device(DEVICE, &script(2));
    network.device(other, &script(2));
    network.api.set_device(other, other, &[("k", "v")]);
    let expected = json!({"version": 2, "variables": {"k": "v"}});
    until_object((&mut chirpstack, &mut application), other, |object| *object == expected).await;
}

/// ChirpStack refuses to say to the key of a tenant that something does not exist.
#[tokio::test]
async fn what_was_deleted_is_forgotten_with_the_key_of_a_tenant_too() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICE, &script(1));
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    send(&mut chirpstack, DEVICE, 0, "AQ==").await;
    next_up(&mut application).await;
    network.api.restrict_token();
    network.api.delete_profile(DEVICE);
    let log = until_log((&mut chirpstack, &mut application), DEVICE).await;
    assert!(log["description"].as_str().unwrap().contains("may not read device profile"), "{log}");
}

#[tokio::test]
async fn a_new_api_key_is_used_without_a_restart_and_an_old_one_does_not_stop_a_start() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICE, &script(1));
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    let bridge = network.bridge().await;
    send(&mut chirpstack, DEVICE, 0, "AQ==").await;
    next_up(&mut application).await;
    bridge.stop().await;
    network.api.replace_token("new");
    network.device(DEVICE, &script(2));
    let _bridge = network.bridge().await;
    send(&mut chirpstack, DEVICE, 1, "AQ==").await;
    assert_eq!(next_up(&mut application).await["object"]["version"], 1);
    std::fs::write(network.settings.grpc.token_file.as_ref().unwrap(), "new").unwrap();
    until_object((&mut chirpstack, &mut application), DEVICE, |object| object["version"] == 2).await;
}

/// The wait for the API is longer than the test, and there is room for few messages.
#[tokio::test]
async fn unknown_devices_do_not_hold_up_known_ones_while_the_api_is_away() {
    let Some(mut network) = Network::start().await else { return };
    network.device(DEVICE, &script(1));
    let proxy = Proxy::start(Some(network.api.address())).await;
    network.settings.grpc.url = format!("http://{}", proxy.address);
    network.settings.api_wait_ms_max = 3_600_000;
    network.settings.in_flight_max = 8;
    let _bridge = network.bridge().await;
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    send(&mut chirpstack, DEVICE, 0, "AQ==").await;
    next_up(&mut application).await;
    proxy.redirect(None).await;
    for number in 0..40 {
        send(&mut chirpstack, &format!("b3000000000000{number:02}"), 1, "AQ==").await;
    }
    send(&mut chirpstack, DEVICE, 1, "AQ==").await;
    let known = async {
        loop {
            let message = application.next().await;
            if message.topic.contains(DEVICE) {
                return message.json();
            }
        }
    };
    assert_eq!(soon("the uplink", known).await["object"]["version"], 1);
}

#[tokio::test]
async fn a_bridge_starts_and_decodes_while_the_api_is_away() {
    let Some(mut network) = Network::start().await else { return };
    network.api.set_profile(DEVICE, CodecRuntime::Js, &script(1));
    network.api.set_device(DEVICE, DEVICE, &[("k", "v")]);
    let proxy = Proxy::start(Some(network.api.address())).await;
    network.settings.grpc.url = format!("http://{}", proxy.address);
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);

    let bridge = network.bridge().await;
    send(&mut chirpstack, DEVICE, 0, "AQ==").await;
    next_up(&mut application).await;
    bridge.stop().await;

    proxy.redirect(None).await;
    network.settings.api_wait_ms_max = 100;
    let _bridge = network.bridge().await;
    send(&mut chirpstack, DEVICE, 1, "AQ==").await;
    assert_eq!(next_up(&mut application).await["object"], json!({"version": 1, "variables": {"k": "v"}}));
    // A device that was never seen is published without an object.
    send(&mut chirpstack, "a400000000000000", 1, "AQ==").await;
    let (log, up) = next_log_and_up(&mut application).await;
    assert!(log["description"].as_str().unwrap().contains("API cannot be reached"), "{log}");
    assert_eq!(up.get("object"), None);
}
