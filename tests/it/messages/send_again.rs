//! Stored messages are sent again: marked, with their newest fields, behind live ones, and to whom they are meant for.

mod faults;

use api::downlink::Downlink;
use serde_json::{Value, json};
use testing::MqttClient;

use crate::{
    delivery::webhooks::{call, receiver::Receiver},
    harness::{Network, Owner, next_of_all},
};

const WRONG: &str = "function Decoder(bytes) { return { celsius: bytes[0] }; }";
const RIGHT: &str = "function Decoder(bytes) { return { celsius: bytes[0] << 24 >> 24 }; }";
const NEVER_ZERO: &str = "function Validator(fields) { return fields.celsius !== 0; }";

/// Asks a handler to do something with history; returns the status, and its reports or its error.
async fn post(network: &Network, owner: &Owner, what: &str, body: Value) -> (u16, Vec<Value>) {
    let response = request(network, owner, what, &body).send().await.unwrap();
    let status = response.status().as_u16();
    (status, reports(&response.text().await.unwrap()))
}

fn request(network: &Network, owner: &Owner, what: &str, body: &Value) -> reqwest::RequestBuilder {
    let url = format!("{}/applications/{}/history/{what}", network.handler_http(), owner.app_id);
    reqwest::Client::new().post(url).header("authorization", owner.token.to_header()).json(body)
}

fn reports(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The sum of what a handler reports about messages that it sends again, all of them.
async fn send(network: &Network, owner: &Owner, body: Value) -> Value {
    let (status, reports) = post(network, owner, "replay", body).await;
    assert_eq!(status, 200, "{reports:?}");
    sum(&reports)
}

fn sum(reports: &[Value]) -> Value {
    assert_eq!(reports.last(), Some(&json!({"done": true})), "{reports:?}");
    let mut sum = serde_json::Map::new();
    for (name, value) in reports.iter().flat_map(|report| report.as_object().unwrap()) {
        match value.as_u64() {
            Some(count) => {
                let before = sum.get(name).and_then(Value::as_u64).unwrap_or_default();
                sum.insert(name.clone(), json!(before + count));
            }
            None if name == "receivers" => _ = sum.insert(name.clone(), value.clone()),
            None => {}
        }
    }
    Value::Object(sum)
}

/// The records of an application, oldest first.
async fn records(network: &Network, owner: &Owner, filter: &str) -> Vec<Value> {
    let (_, page) = owner.ask(&network.handler_http(), "GET", &format!("/history?{filter}"), Value::Null).await;
    page["records"].as_array().unwrap().iter().rev().cloned().collect()
}

/// A client with these subscriptions below the application.
async fn subscriber(network: &Network, owner: &Owner, filters: &[&str]) -> MqttClient {
    let mut client = MqttClient::connect_with(&network.mqtt(), owner.app_id.as_str(), owner.key.expose()).await;
    for filter in filters {
        client.subscribe(&format!("{}/{filter}", owner.app_id)).await;
    }
    client
}

/// An owner of a device whose uplinks had 21, 255 (which is wrong), and 0 degrees (which was refused).
async fn owner(network: &Network) -> Owner {
    let owner = network.owner("past").await;
    owner.add_device("warm").await;
    owner.set_functions([WRONG, "", NEVER_ZERO]).await.unwrap();
    owner.simulate("warm", &[21], 2).await.unwrap();
    owner.simulate("warm", &[255], 1).await.unwrap();
    owner.simulate("warm", &[0], 1).await.unwrap_err();
    owner
}

// Conformance: Stored messages are sent again, marked, with their own times and newest fields
#[tokio::test(flavor = "multi_thread")]
async fn messages_are_sent_again_marked_with_their_own_times_and_their_newest_fields() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    owner.set_functions([RIGHT, "", NEVER_ZERO]).await.unwrap();
    assert_eq!(post(&network, &owner, "decode", json!({"write": true})).await.0, 200);
    let before = records(&network, &owner, "").await;
    let mut listener = owner.listen(&network).await;
    let dry = send(&network, &owner, json!({"dry_run": true})).await;
    assert_eq!(dry, json!({"examined": 4, "sent": 3, "never_published": 1}), "{before:?}");
    assert_eq!(send(&network, &owner, json!({})).await, dry);
    let (topic, event) = next_of_all(&mut listener).await;
    assert_eq!((&*topic, &event["is_retry"]), ("warm/events/create", &json!(true)));
    let uplinks: Vec<_> = before.iter().filter(|record| record["kind"] == "up").collect();
    for (record, celsius) in [(uplinks[0], 21), (uplinks[1], -1)] {
        let (topic, message) = next_of_all(&mut listener).await;
        assert_eq!((&*topic, &message["is_retry"]), ("warm/up", &json!(true)));
        assert_eq!((&message["port"], &message["payload_raw"]), (&record["port"], &record["payload_raw"]));
        assert_eq!(message["metadata"]["time"], record["time"], "when it was received");
        assert_eq!(message["payload_fields"], json!({ "celsius": celsius }));
        let corrected = if celsius < 0 { (json!(1), record["id"].clone()) } else { (Value::Null, Value::Null) };
        assert_eq!((message["revision"].clone(), message["corrects"].clone()), corrected);
    }
    assert_eq!(records(&network, &owner, "").await, before, "what is sent again is not recorded again");
    network.stack.stop().await;
}

// Conformance: Stored messages are sent again, marked, with their own times and newest fields
#[tokio::test(flavor = "multi_thread")]
async fn one_message_or_those_after_another_or_those_that_filters_select_are_sent() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    owner.set_functions([RIGHT, "", NEVER_ZERO]).await.unwrap();
    post(&network, &owner, "decode", json!({"write": true})).await;
    let all = records(&network, &owner, "kind=up").await;
    let mut listener = owner.listen(&network).await;
    for id in [&all[1]["id"], &all[3]["id"]] {
        assert_eq!(send(&network, &owner, json!({ "id": id })).await, json!({"examined": 1, "sent": 1}), "{all:?}");
        let (_, message) = next_of_all(&mut listener).await;
        assert_eq!(message["corrects"], all[1]["id"], "a correction stands for what it corrects: {message}");
    }
    for (body, examined) in [
        (json!({"kind": "up", "after": all[0]["id"]}), 2),
        (json!({"kind": "create"}), 1),
        (json!({"kind": "up", "port": 2}), 1),
        (json!({"failed": true}), 1),
        (json!({"field": "fields.celsius > 100", "text": "255", "version": 1, "dev_id": "warm"}), 1),
        (json!({"since": "2100-01-01T00:00:00Z"}), 0),
    ] {
        let mut body = body;
        body["dry_run"] = json!(true);
        let seen = send(&network, &owner, body.clone()).await;
        assert_eq!(seen["examined"].as_u64().unwrap_or_default(), examined, "{body}: {seen}");
    }
    network.stack.stop().await;
}

// Conformance: Stored messages are sent again, marked, with their own times and newest fields
#[tokio::test(flavor = "multi_thread")]
async fn a_topic_reaches_those_who_name_it_and_nobody_with_wildcards() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    let mut named = subscriber(&network, &owner, &["backfill/devices/+/up", "backfill/devices/+/up/+"]).await;
    let mut all_named = subscriber(&network, &owner, &["backfill/#"]).await;
    let mut others = subscriber(&network, &owner, &["#", "+/devices/+/up", "devices/+/up", "other/#"]).await;
    let body = json!({"kind": "up", "to": {"topic": "backfill"}});
    assert_eq!(send(&network, &owner, body).await, json!({"examined": 3, "sent": 2, "never_published": 1}));
    for celsius in [21, 255] {
        let message = named.next().await;
        assert_eq!(message.topic, format!("{}/backfill/devices/warm/up", owner.app_id));
        assert_eq!(message.json()["payload_fields"]["celsius"], celsius);
        assert_eq!(named.next().await.json(), json!(celsius), "also the field alone");
        assert_eq!(all_named.next().await, message);
        assert_eq!(all_named.next().await.json(), json!(celsius));
    }
    // An event has one name there, although live ones have v2's other name, too.
    let downlink = Downlink {
        app_id: owner.app_id.to_string(),
        dev_id: "warm".to_owned(),
        payload_raw: vec![1],
        port: 1,
        ..Downlink::default()
    };
    owner.handler.schedule_downlink(downlink).await.unwrap();
    let live = others.next().await;
    assert_eq!(live.topic, format!("{}/devices/warm/events/down/scheduled", owner.app_id));
    for _ in 0..2 {
        let body = json!({"kind": "down/scheduled", "to": {"topic": "backfill"}});
        // Nobody has waited until the event was in history.
        let sent = loop {
            let sent = send(&network, &owner, body.clone()).await;
            if sent != json!({}) {
                break sent;
            }
        };
        assert_eq!(sent, json!({"examined": 1, "sent": 1}));
        let event = all_named.next().await;
        assert_eq!(event.topic, format!("{}/backfill/devices/warm/events/down/scheduled", owner.app_id));
    }
    // Nobody subscribed to this one.
    let body = json!({"kind": "up", "to": {"topic": "unknown/level"}});
    assert_eq!(send(&network, &owner, body).await["unwanted"], 2);
    owner.simulate("warm", &[33], 1).await.unwrap();
    let first = others.next().await;
    assert_eq!(first.json()["payload_fields"]["celsius"], 33, "the first that the others get is live: {first:?}");
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uplinks_with_many_fields_have_room_for_each_of_them() {
    let network = Network::start().await;
    let owner = network.owner("many").await;
    owner.add_device("warm").await;
    let fields = "function Decoder(bytes) { const f = {}; for (let i = 0; i < 30; i++) f['f' + i] = i; return f; }";
    owner.set_functions([fields, "", ""]).await.unwrap();
    for byte in 0..12 {
        owner.simulate("warm", &[byte], 1).await.unwrap();
    }
    let mut all = subscriber(&network, &owner, &["#"]).await;
    // Whoever wants a field alone is somebody, too.
    let mut field = subscriber(&network, &owner, &["devices/warm/up/f7"]).await;
    let dry = json!({"kind": "up", "dry_run": true});
    assert_eq!(send(&network, &owner, dry).await, json!({"examined": 12, "sent": 12}));
    assert_eq!(send(&network, &owner, json!({"kind": "up", "per_s": 1000})).await, json!({"examined": 12, "sent": 12}));
    for _ in 0..12 {
        assert_eq!(field.next().await.json(), 7);
    }
    for _ in 0..12 * 31 {
        all.next().await;
    }
    network.stack.stop().await;
}

// Conformance: Stored messages are sent again, marked, with their own times and newest fields
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_alone_gets_what_is_sent_to_it() {
    let network = Network::with(|settings| settings.output.delivery.allow_private_addresses = true).await;
    let owner = owner(&network).await;
    let (mut one, other) = (Receiver::start().await, Receiver::start().await);
    for (id, receiver) in [("one", &one), ("other", &other)] {
        let webhook = json!({"url": receiver.url(), "events": ["up"]});
        assert_eq!(call(&network.handler_http(), &owner, "PUT", &format!("/{id}"), webhook).await.0, 200);
    }
    let mut listener = owner.listen(&network).await;
    let seen = send(&network, &owner, json!({"to": {"webhook": "one"}})).await;
    // It does not want the event.
    assert_eq!(
        (&seen["sent"], &seen["unwanted"], &seen["never_published"]),
        (&json!(2), &json!(1), &json!(1)),
        "{seen}"
    );
    for celsius in [21, 255] {
        let message = one.next().await.json();
        assert_eq!((&message["payload_fields"]["celsius"], &message["is_retry"]), (&json!(celsius), &json!(true)));
    }
    assert_eq!(send(&network, &owner, json!({"kind": "up", "to": "mqtt"})).await["sent"], 2);
    assert_eq!(next_of_all(&mut listener).await.1["payload_fields"]["celsius"], 21);
    for (to, status) in [
        (json!({"webhook": "unknown"}), 404),
        (json!({"output": "unknown"}), 404),
        (json!({"output": "one"}), 404),
        (json!({"webhook": "No Id"}), 400),
        (json!({"topic": "devices"}), 400),
        (json!({"topic": "+"}), 400),
        (json!("webhook"), 400),
    ] {
        assert_eq!(post(&network, &owner, "replay", json!({ "to": to })).await.0, status, "{to}");
    }
    for (body, status) in [
        (json!({"id": "0196f3c2a1b40000002a00000001"}), 404),
        (json!({"id": "first"}), 400),
        (json!({"after": "first"}), 400),
        (json!({"per_s": 10_001}), 400),
        (json!({"field": "celsius"}), 400),
        (json!({"others": 1}), 400),
    ] {
        assert_eq!(post(&network, &owner, "replay", body.clone()).await.0, status, "{body}");
    }
    network.stack.stop().await;
    assert!(other.is_empty() && one.is_empty());
}

// Conformance: Stored messages are sent again, marked, with their own times and newest fields
#[tokio::test(flavor = "multi_thread")]
async fn sending_again_takes_the_rights_to_read_and_to_write_messages() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    let url = format!("{}/applications/{}/history/replay", network.handler_http(), owner.app_id);
    for right in ["messages:up:r", "messages:up:w", "settings"] {
        let key = owner.key_with(&network, right).await;
        let request = reqwest::Client::new().post(&url).header("authorization", format!("Key {}", key.expose()));
        let response = request.json(&json!({"dry_run": true})).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 403, "{right}: {}", response.text().await.unwrap());
    }
    let response = reqwest::Client::new().post(&url).json(&json!({})).send().await.unwrap();
    assert_eq!(response.status().as_u16(), 401);
    network.stack.stop().await;
}
