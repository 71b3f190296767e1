//! Choice of formatters, and refreshes after changes.

use bridge::Error;
use serde_json::{Value, json};
use testing::{MqttClient, things_stack_uplink};
use things_stack::ThingsStackApplication;

use crate::harness::{APPLICATION_ID, Network, javascript, next_report_and_up, next_up, send};

fn returns(text: &str) -> String {
    format!("function decodeUplink(input) {{ return {{data: {{from: '{text}'}}}} }}")
}

async fn decoded(things_stack: &mut MqttClient, application: &mut MqttClient, device: &str, counter: u32) -> Value {
    send(things_stack, device, counter, "AWcBEA==").await;
    next_up(application).await["uplink_message"]["decoded_payload"].take()
}

#[tokio::test]
async fn the_formatter_of_a_device_comes_before_those_of_its_application_and_model() {
    let Some(network) = Network::start().await else { return };
    network.default_script(&returns("application"), "");
    network.device("plain");
    let version = json!({"brand_id": "b", "model_id": "m", "firmware_version": "1.0", "band_id": "EU_863_870"});
    network.api.set_repository("b/m/1.0/EU_863_870/uplink/decoder", &returns("repository"));
    for (device, formatters) in [
        ("own", javascript(&returns("device"), "")),
        ("model", json!({"up_formatter": "FORMATTER_REPOSITORY"})),
        ("lpp", json!({"up_formatter": "FORMATTER_CAYENNELPP"})),
        ("none", json!({"up_formatter": "FORMATTER_NONE"})),
        ("empty", json!({})),
    ] {
        network.api.set_device(APPLICATION_ID, device, json!({"formatters": formatters, "version_ids": version}));
    }
    let v2 = "function Decoder(bytes, port) { return {from: 'v2', port: port} }";
    network.api.set_device(APPLICATION_ID, "v2", json!({"formatters": javascript(v2, "")}));
    let _bridge = network.bridge().await;
    let (mut things_stack, mut application) = (network.things_stack().await, network.application().await);
    for (device, expected) in [
        ("plain", json!({"from": "application"})),
        ("own", json!({"from": "device"})),
        ("model", json!({"from": "repository"})),
        ("lpp", json!({"temperature_1": 27.2})),
        ("none", Value::Null),
        ("empty", Value::Null),
        ("v2", json!({"from": "v2", "port": 2})),
    ] {
        assert_eq!(decoded(&mut things_stack, &mut application, device, 1).await, expected, "{device}");
    }
}

#[tokio::test]
async fn changes_are_followed() {
    let Some(network) = Network::start().await else { return };
    network.default_script(&returns("old"), "");
    network.device("dev1");
    let _bridge = network.bridge().await;
    let (mut things_stack, mut application) = (network.things_stack().await, network.application().await);
    let mut counter = 0;
    let mut until = async |expected: &str| loop {
        counter += 1;
        if decoded(&mut things_stack, &mut application, "dev1", counter).await == json!({"from": expected}) {
            return;
        }
    };
    until("old").await;
    network.default_script(&returns("new"), "");
    until("new").await;
    network.api.set_device(APPLICATION_ID, "dev1", json!({"formatters": javascript(&returns("own"), "")}));
    until("own").await;
    network.device("dev1");
    until("new").await;
}

#[tokio::test]
async fn a_bridge_starts_from_its_cache_while_the_api_is_away() {
    let Some(mut network) = Network::start().await else { return };
    network.default_script(&returns("application"), "");
    network.device("dev1");
    network.api.set_device(APPLICATION_ID, "own", json!({"formatters": javascript(&returns("own"), "")}));
    let bridge = network.bridge().await;
    let (mut things_stack, mut application) = (network.things_stack().await, network.application().await);
    for device in ["dev1", "own"] {
        decoded(&mut things_stack, &mut application, device, 1).await;
    }
    bridge.stop().await;
    network.settings.api.url = "http://127.0.0.1:1".to_owned();
    let _bridge = network.bridge().await;
    for (device, expected) in [("dev1", "application"), ("own", "own")] {
        assert_eq!(decoded(&mut things_stack, &mut application, device, 2).await, json!({"from": expected}));
    }
}

#[tokio::test]
async fn a_start_that_cannot_work_says_why() {
    let Some(mut network) = Network::start().await else { return };
    let message = |result: Result<things_stack::ThingsStackBridge, Error>| result.err().unwrap().to_string();
    network.api.set_key("another");
    assert!(message(network.try_bridge().await).contains("create one in the Console under `API keys`"));
    network.settings.api.url = "http://127.0.0.1:1".to_owned();
    let unreachable = network.try_bridge().await.err().unwrap();
    let cause = std::error::Error::source(&unreachable).unwrap().to_string();
    assert!(cause.contains("127.0.0.1:1: check that it runs there"), "{cause}");
    network.settings.api.url = String::new();
    assert!(message(network.try_bridge().await).contains("--api"));
    network.settings.api.url = "localhost:1".to_owned();
    assert!(message(network.try_bridge().await).contains("http"), "and not the broker's address, which comes from it");
    network.settings.api.url = "http://127.0.0.1:1".to_owned();
    network.settings.to.url = String::new();
    assert!(message(network.try_bridge().await).contains("--to"));
    network.settings.applications.clear();
    assert!(message(network.try_bridge().await).contains("--application"));
}

#[tokio::test]
async fn what_the_key_of_one_application_may_not_read_others_may() {
    let Some(mut network) = Network::start().await else { return };
    let version = json!({"brand_id": "b", "model_id": "m", "firmware_version": "1.0", "band_id": "EU_863_870"});
    network.api.set_repository("b/m/1.0/EU_863_870/uplink/decoder", &returns("repository"));
    let formatters = json!({"up_formatter": "FORMATTER_REPOSITORY"});
    let known = json!({"formatters": formatters, "version_ids": version});
    for application in [APPLICATION_ID, "other"] {
        network.api.set_device(application, "dev1", known.clone());
    }
    network.api.refuse_repository(APPLICATION_ID);
    network.settings.applications.push(ThingsStackApplication { id: "other@lab".to_owned(), key_file: None });
    network.settings.refresh_interval_ms = 3_600_000;
    let _bridge = network.bridge().await;
    let (mut things_stack, mut application) = (network.things_stack().await, network.application().await);
    send(&mut things_stack, "dev1", 1, "AQ==").await;
    let (report, up) = next_report_and_up(&mut application).await;
    assert!(report["data"]["message"].as_str().unwrap().contains("may not read model"), "{report}");
    assert_eq!(up["uplink_message"].get("decoded_payload"), None);
    let other = things_stack_uplink("dev1", 1, "AQ==").to_string().replace("\"sensors\"", "\"other\"");
    things_stack.publish("v3/other@lab/devices/dev1/up", other).await;
    let up = next_up(&mut application).await;
    assert_eq!(up["uplink_message"]["decoded_payload"], json!({"from": "repository"}));
}
