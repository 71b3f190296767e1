//! Downlinks over REST and gRPC: their senders learn the outcome at once.

use api::downlink::Downlink;
use serde_json::{Value, json};
use testing::MqttClient;
use types::{Kind, Kinded};

use crate::harness::{Network, Owner, next};

const ENCODER: &str = "function Encoder(object, port) { return [object.led, port]; }";

/// Calls the queue of a device over REST.
async fn call(network: &Network, owner: &Owner, method: &str, dev_id: &str, body: Option<Value>) -> (u16, Value) {
    let path = format!("/devices/{dev_id}/downlinks");
    owner.ask(&network.handler_http(), method, &path, body.unwrap_or_default()).await
}

async fn set_encoder(owner: &Owner) {
    let mut application = owner.handler.get_application(&owner.app_id).await.unwrap();
    application.payload_format = "custom".to_owned();
    application.encoder = ENCODER.to_owned();
    owner.handler.set_application(application).await.unwrap();
}

// Conformance: Downlinks over REST and gRPC, which v2 did not have
#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_filled_listed_and_cleared_over_rest() {
    let network = Network::start().await;
    let owner = network.owner("rest").await;
    owner.add_device("dev-1").await;
    set_encoder(&owner).await;
    let mut listener = owner.listen(&network).await;
    let post = async |body| call(&network, &owner, "POST", "dev-1", Some(body)).await;
    let sent = json!({"port": 2, "confirmed": true, "payload_fields": {"led": 7}});
    let queued = json!({"port": 2, "confirmed": true, "payload_raw": "BwI="});
    assert_eq!(post(sent.clone()).await, (200, queued.clone()));
    let (topic, event) = next(&mut listener).await;
    assert_eq!((topic.as_str(), &event["message"]), ("dev-1/events/down/scheduled", &sent));
    let last = json!({"port": 1, "payload_raw": "AQ=="});
    assert_eq!(post(json!({"payload_raw": "AQ==", "schedule": "last"})).await, (200, last.clone()));
    let first = json!({"port": 3, "payload_raw": "Aw=="});
    assert_eq!(post(json!({"port": "3", "payload_raw": "Aw==", "schedule": "first"})).await, (200, first.clone()));
    let list = json!({"downlinks": [first, queued, last]});
    assert_eq!(call(&network, &owner, "GET", "dev-1", None).await, (200, list));
    assert_eq!(call(&network, &owner, "DELETE", "dev-1", None).await, (200, json!({})));
    assert_eq!(call(&network, &owner, "GET", "dev-1", None).await, (200, json!({"downlinks": []})));
    network.stack.stop().await;
}

// Conformance: The events `down/scheduled` and `down/sent` as `events/downlink/…`
#[tokio::test(flavor = "multi_thread")]
async fn an_event_has_the_name_of_the_specification_for_who_asks_for_it() {
    let network = Network::start().await;
    let owner = network.owner("namer").await;
    owner.add_device("dev-1").await;
    // This one has wildcards, and so gets each event once.
    let mut other = owner.listen(&network).await;
    let mut named = MqttClient::connect_with(&network.mqtt(), owner.app_id.as_str(), owner.key.expose()).await;
    for name in ["scheduled", "sent"] {
        named.subscribe(&format!("{}/devices/+/events/downlink/{name}", owner.app_id)).await;
    }
    for payload in ["AQ==", "Ag=="] {
        let body = json!({"port": 2, "payload_raw": payload});
        assert_eq!(call(&network, &owner, "POST", "dev-1", Some(body)).await.0, 200);
        for (listener, name) in
            [(&mut named, "dev-1/events/downlink/scheduled"), (&mut other, "dev-1/events/down/scheduled")]
        {
            let (topic, event) = next(listener).await;
            assert_eq!((topic.as_str(), &event["message"]["payload_raw"]), (name, &json!(payload)));
        }
    }
    network.stack.stop().await;
}

// Conformance: Downlinks over REST and gRPC, which v2 did not have
#[tokio::test(flavor = "multi_thread")]
async fn rest_says_at_once_why_a_downlink_is_refused() {
    let network = Network::start().await;
    let owner = network.owner("refused").await;
    owner.add_device("dev-1").await;
    let fields = json!({"payload_fields": {"led": 7}});
    for (dev_id, body, status, reason) in [
        ("nobody", json!({"payload_raw": "AQ=="}), 404, "not found"),
        ("dev-1", fields, 400, "converts none"),
        ("dev-1", json!({}), 400, "empty"),
        ("dev-1", json!({"payload_raw": "AQ==", "schedule": "soon"}), 400, "ScheduleType"),
        ("dev-1", json!({"payload_raw": "AQ==", "port": 224}), 400, "1 to 223"),
        ("dev-1", json!({"payload_raw": "AQ==", "port": 256}), 400, "1 to 223"),
        ("dev-1", json!({"payload_fields": [1]}), 400, "must be a JSON object"),
        ("dev-1", json!({"payload_raw": "?"}), 400, "base64 not valid"),
        ("dev-1", json!({"payload_raw": "AQ==", "port": true}), 400, "a number, or a text that is one"),
        ("dev-1", json!({"payload_raw": format!("?{}", "A".repeat(1000))}), 400, "base64 not valid"),
        ("dev-1", json!({"payload_raw": "A".repeat(324)}), 400, "at most 242 bytes"),
    ] {
        let (found, response) = call(&network, &owner, "POST", dev_id, Some(body.clone())).await;
        let error = response["error"].as_str().unwrap_or_default();
        assert!(found == status && error.contains(reason), "{body}: {found} {response}");
        assert!(error.len() < 300, "no long text is repeated: {error}");
    }
    for method in ["GET", "DELETE"] {
        assert_eq!(call(&network, &owner, method, "nobody", None).await.0, 404, "{method}");
    }
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_encoder_returns_is_checked_at_once() {
    let network = Network::start().await;
    let owner = network.owner("encoding").await;
    owner.add_device("dev-1").await;
    let mut application = owner.handler.get_application(&owner.app_id).await.unwrap();
    application.payload_format = "ts013".to_owned();
    application.encoder = "function encodeDownlink(input) { return input.data; }".to_owned();
    owner.handler.set_application(application).await.unwrap();
    for (fields, status, reason) in [
        (json!({"bytes": [1], "fPort": 223}), 200, ""),
        (json!({"bytes": [1], "fPort": 223, "warnings": ["led is old"]}), 200, ""),
        (json!({"bytes": [1], "fPort": 230}), 400, "1 to 223"),
        (json!({"bytes": [], "fPort": 1}), 400, "no bytes"),
    ] {
        let body = json!({"payload_fields": fields});
        let (found, response) = call(&network, &owner, "POST", "dev-1", Some(body)).await;
        let error = response["error"].as_str().unwrap_or_default();
        assert!(found == status && error.contains(reason), "{fields}: {found} {response}");
        assert_eq!(response["warnings"], fields["warnings"]);
    }
    let fields = r#"{"bytes": [1], "fPort": 223, "warnings": ["led is old"]}"#;
    let ids = (owner.app_id.to_string(), "dev-1".to_owned());
    let downlink = Downlink { app_id: ids.0, dev_id: ids.1, payload_fields: fields.to_owned(), ..Downlink::default() };
    assert_eq!(owner.handler.schedule_downlink(downlink).await.unwrap().warnings, ["led is old"]);
    network.stack.stop().await;
}

// Conformance: Downlinks over REST and gRPC, which v2 did not have
#[tokio::test(flavor = "multi_thread")]
async fn grpc_has_the_same_queue() {
    let network = Network::start().await;
    let owner = network.owner("grpc").await;
    owner.add_device("dev-1").await;
    set_encoder(&owner).await;
    let (dev_id, app_id) = ("dev-1".parse().unwrap(), owner.app_id.to_string());
    let sent = Downlink {
        app_id: app_id.clone(),
        dev_id: "dev-1".to_owned(),
        payload_fields: r#"{"led": 7}"#.to_owned(),
        ..Downlink::default()
    };
    let queued = owner.handler.schedule_downlink(sent.clone()).await.unwrap();
    assert_eq!((queued.port, &queued.payload_raw[..], queued.payload_fields.as_str()), (1, &[7, 0][..], ""));
    assert_eq!(owner.handler.list_downlinks(&owner.app_id, &dev_id).await.unwrap(), [queued]);
    owner.handler.clear_downlinks(&owner.app_id, &dev_id).await.unwrap();
    assert_eq!(owner.handler.list_downlinks(&owner.app_id, &dev_id).await.unwrap(), []);
    for (change, kind) in [
        (Downlink { dev_id: "nobody".to_owned(), ..sent.clone() }, Kind::NotFound),
        (Downlink { payload_fields: "[".to_owned(), ..sent.clone() }, Kind::Invalid),
    ] {
        assert_eq!(owner.handler.schedule_downlink(change).await.unwrap_err().kind(), kind);
    }
    network.stack.stop().await;
}
