//! Downlinks of applications.

use std::time::Duration;

use serde_json::{Value, json};
use testing::{MqttClient, soon};

use crate::harness::{APPLICATION_ID, Network, javascript, topic};

const ENCODER: &str = "function encodeDownlink(input) {
    if (input.data.fail) throw new Error();
    if (input.data.port === undefined) return {bytes: [input.data.n]};
    return {bytes: [input.data.n], fPort: input.data.port} }";

async fn start() -> Option<(Network, things_stack::ThingsStackBridge, MqttClient)> {
    let network = Network::start().await?;
    network.default_script("", ENCODER);
    network.device("dev1");
    let bridge = network.bridge().await;
    let application = network.application().await;
    Some((network, bridge, application))
}

async fn push(application: &mut MqttClient, device: &str, operation: &str, body: Value) {
    application.publish(&topic(device, &format!("down/{operation}")), body.to_string()).await;
}

/// The next call that queues downlinks.
async fn next_downlink(network: &Network) -> (String, Value) {
    let next = async {
        loop {
            if let Some(downlink) = network.api.next_downlink() {
                return downlink;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon("a downlink", next).await
}

#[tokio::test]
async fn a_decoded_payload_is_encoded_and_everything_else_stays() {
    let Some((network, _bridge, mut application)) = start().await else { return };
    for (operation, downlink, expected) in [
        (
            "push",
            json!({"f_port": 15, "decoded_payload": {"n": 7}, "priority": "HIGH", "correlation_ids": ["mine"]}),
            json!({"f_port": 15, "frm_payload": "Bw==", "priority": "HIGH", "correlation_ids": ["mine"]}),
        ),
        (
            "replace",
            json!({"f_port": 15, "decoded_payload": {"n": 1, "port": 9}}),
            json!({"f_port": 9, "frm_payload": "AQ=="}),
        ),
        (
            "push",
            json!({"f_port": 15, "decoded_payload": {"n": "0x10", "port": "12"}}),
            json!({"f_port": 12, "frm_payload": "EA=="}),
        ),
        ("push", json!({"decoded_payload": {"n": -1}}), json!({"f_port": 1, "frm_payload": "/w=="})),
        ("push", json!({"decoded_payload": {"n": 2}}), json!({"f_port": 1, "frm_payload": "Ag=="})),
        ("push", json!({"f_port": 3, "frm_payload": "vu8="}), json!({"f_port": 3, "frm_payload": "vu8="})),
    ] {
        push(&mut application, "dev1", operation, json!({"downlinks": [downlink]})).await;
        let (path, body) = next_downlink(&network).await;
        assert_eq!((path, body), (format!("devices/dev1/down/{operation}"), json!({"downlinks": [expected]})));
    }
    push(&mut application, "dev1", "replace", json!({"downlinks": []})).await;
    assert_eq!(next_downlink(&network).await.1, json!({"downlinks": []}));
}

#[tokio::test]
async fn the_encoders_of_version_2_and_cayenne_lpp_run_too() {
    let Some((network, _bridge, mut application)) = start().await else { return };
    let v2 = "function Encoder(object, port) { return [object.n, port] }";
    network.api.set_device(APPLICATION_ID, "v2", json!({"formatters": javascript("", v2)}));
    network.api.set_device(APPLICATION_ID, "lpp", json!({"formatters": {"down_formatter": "FORMATTER_CAYENNELPP"}}));
    push(&mut application, "v2", "push", json!({"downlinks": [{"f_port": 4, "decoded_payload": {"n": 1}}]})).await;
    assert_eq!(next_downlink(&network).await.1["downlinks"][0]["frm_payload"], "AQQ=");
    push(&mut application, "lpp", "push", json!({"downlinks": [{"decoded_payload": {"value_1": 10}}]})).await;
    assert_eq!(next_downlink(&network).await.1["downlinks"][0]["frm_payload"], "AQPo");
}

#[tokio::test]
async fn what_cannot_be_encoded_or_queued_fails_as_in_the_things_stack() {
    let Some((network, _bridge, mut application)) = start().await else { return };
    network.api.set_device(APPLICATION_ID, "none", json!({"formatters": {}}));
    network.api.refuse_downlinks([400]);
    let ok = json!({"downlinks": [{"f_port": 1, "frm_payload": "AQ==", "correlation_ids": ["mine"]}]});
    push(&mut application, "dev1", "push", ok).await;
    let failed = application.next().await;
    assert_eq!(failed.topic, topic("dev1", "down/failed"));
    let failed = failed.json();
    assert_eq!(
        (&failed["correlation_ids"], &failed["end_device_ids"]["device_id"]),
        (&json!(["mine"]), &json!("dev1"))
    );
    assert_eq!(failed["downlink_failed"]["downlink"]["frm_payload"], "AQ==");
    for (device, body, message) in [
        ("dev1", "not json".to_owned(), "not a JSON object"),
        ("dev1", "{}".to_owned(), "`downlinks` is missing"),
        ("dev1", json!({"downlinks": [{"f_port": 300, "decoded_payload": {}}]}).to_string(), "`f_port` is 300"),
        (
            "dev1",
            json!({"downlinks": [{"f_port": 1, "decoded_payload": {"fail": true}}]}).to_string(),
            "encodeDownlink",
        ),
        ("none", json!({"downlinks": [{"f_port": 1, "decoded_payload": {}}]}).to_string(), "no downlink formatter"),
        ("unknown", json!({"downlinks": [{"f_port": 1, "decoded_payload": {}}]}).to_string(), "no device"),
    ] {
        application.publish(&topic(device, "down/push"), body.clone()).await;
        let failed = application.next().await;
        assert_eq!(failed.topic, topic(device, "down/failed"));
        let error = &failed.json()["downlink_failed"]["error"];
        assert!(error["message_format"].as_str().unwrap().contains(message), "{body}: {error}");
    }
    assert_eq!(network.api.next_downlink(), None);
}

#[tokio::test]
async fn a_downlink_on_a_topic_without_the_tenant_fails_and_says_so() {
    let Some((network, _bridge, mut application)) = start().await else { return };
    let without = format!("v3/{APPLICATION_ID}/devices/dev1/down");
    let downlink = json!({"downlinks": [{"f_port": 1, "frm_payload": "AQ==", "correlation_ids": ["mine"]}]});
    application.publish(&format!("{without}/push"), downlink.to_string()).await;
    let failed = application.next().await;
    assert_eq!(failed.topic, format!("{without}/failed"));
    let failed = failed.json();
    let message = failed["downlink_failed"]["error"]["message_format"].as_str().unwrap();
    assert!(message.contains(&format!("has no tenant: publish to {}", topic("dev1", "down/push"))), "{message}");
    assert_eq!(failed["correlation_ids"], json!(["mine"]));
    assert_eq!(network.api.next_downlink(), None);
}

/// Otherwise a small message would become very many.
#[tokio::test]
async fn too_many_downlinks_at_once_fail_as_one() {
    let Some((network, _bridge, mut application)) = start().await else { return };
    push(&mut application, "dev1", "push", json!({"downlinks": vec![0; 101]})).await;
    push(&mut application, "dev1", "push", json!({"downlinks": [0]})).await;
    for message in ["at most 100", "not a JSON object"] {
        let failed = application.next().await.json();
        let error = &failed["downlink_failed"]["error"];
        assert!(error["message_format"].as_str().unwrap().contains(message), "{error}");
    }
    let most = vec![json!({"f_port": 1, "frm_payload": "AQ=="}); 100];
    push(&mut application, "dev1", "push", json!({"downlinks": most})).await;
    assert_eq!(next_downlink(&network).await.1["downlinks"].as_array().unwrap().len(), 100);
}

#[tokio::test]
async fn a_downlink_waits_for_an_api_that_is_away() {
    let Some((network, _bridge, mut application)) = start().await else { return };
    network.api.refuse_downlinks([503, 500, 429]);
    for port in [1, 2] {
        push(&mut application, "dev1", "push", json!({"downlinks": [{"f_port": port, "frm_payload": "AQ=="}]})).await;
    }
    for port in [1, 2] {
        assert_eq!(next_downlink(&network).await.1["downlinks"][0]["f_port"], port);
    }
}

#[tokio::test]
async fn a_downlink_fails_that_may_have_been_queued_three_times() {
    let Some((network, _bridge, mut application)) = start().await else { return };
    network.api.refuse_downlinks([504, 503, 504, 504]);
    for port in [1, 2] {
        push(&mut application, "dev1", "push", json!({"downlinks": [{"f_port": port, "frm_payload": "AQ=="}]})).await;
    }
    let failed = application.next().await.json();
    let error = &failed["downlink_failed"]["error"]["message_format"];
    assert!(error.as_str().unwrap().contains("may be sent nevertheless"), "{failed}");
    assert_eq!(next_downlink(&network).await.1["downlinks"][0]["f_port"], 2);
}

#[tokio::test]
async fn a_downlink_waits_for_a_bridge_that_is_down() {
    let Some((network, bridge, mut application)) = start().await else { return };
    drop(bridge);
    push(&mut application, "dev1", "push", json!({"downlinks": [{"f_port": 1, "decoded_payload": {"n": 5}}]})).await;
    let _bridge = network.bridge().await;
    assert_eq!(next_downlink(&network).await.1["downlinks"][0]["frm_payload"], "BQ==");
}
