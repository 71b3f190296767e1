//! Downlinks in response to uplinks of network brokers.

use std::time::Duration;

use serde_json::{Value, json};
use server::system::SystemClock;
use testing::MqttClient;
use types::{Clock, Timestamp};

use super::{
    fake_broker::FakeBroker,
    linked,
    messages::{Kind, frame, routed, uplink, with_template},
};
use crate::{
    console::visitor::Visitor,
    harness::{Owner, next},
};

/// Sends an uplink with a template for a downlink with this counter, which acknowledges the uplink or not.
async fn send(owner: &Owner, broker: &FakeBroker, kind: Kind, f_cnt: u32, (f_cnt_down, acknowledges): (u8, bool)) {
    let f_ctrl = if acknowledges { "20" } else { "00" };
    let template = format!("60F17DBE49{f_ctrl}{f_cnt_down:02X}000100000000");
    let uplink = uplink(&owner.app_id, "dev-1", frame(kind, f_cnt), f_cnt);
    broker.send(with_template(uplink, &template, f_cnt_down.into())).await;
}

async fn enqueue(owner: &Owner, listener: &mut MqttClient, body: Value) {
    listener.publish(&format!("{}/devices/dev-1/down", owner.app_id), body.to_string().as_bytes()).await;
    event(listener, "events/down/scheduled").await;
}

/// The next message but for the application's own, which has this topic.
async fn event(listener: &mut MqttClient, topic: &str) -> Value {
    loop {
        let (actual, message) = next(listener).await;
        if actual != "dev-1/down" {
            assert_eq!(actual, format!("dev-1/{topic}"), "{message}");
            return message;
        }
    }
}

async fn payload(broker: &FakeBroker) -> String {
    hex::encode_upper(broker.downlink().await.payload)
}

// Conformance: Publish: the network server's template becomes the downlink
// Conformance: Transmitting downlinks, and acknowledgements
#[tokio::test(flavor = "multi_thread")]
async fn a_downlink_answers_the_next_uplink() {
    let (network, owner, broker) = linked("sender").await;
    let mut listener = owner.listen(&network).await;
    enqueue(&owner, &mut listener, json!({"port": 5, "payload_raw": "Zmlyc3Q="})).await;
    enqueue(&owner, &mut listener, json!({"port": 5, "payload_raw": "c2Vjb25k", "schedule": "last"})).await;
    send(&owner, &broker, Kind::Confirmed, 3, (20, true)).await;
    event(&mut listener, "up").await;
    let downlink = broker.downlink().await;
    // As lora-packet computes it: with the acknowledgement, and with the bit that says that more is waiting.
    assert_eq!(hex::encode_upper(&downlink.payload), "60F17DBE49301400052FED0684CB8EB2498E");
    let option = downlink.downlink_option.unwrap();
    assert_eq!((option.identifier.as_str(), option.deadline), ("router-1:option", 99));
    assert_eq!((downlink.dev_id.as_str(), downlink.message), ("dev-1", None));
    let mut sent = event(&mut listener, "events/down/sent").await;
    assert!(crate::harness::remove_time(&mut sent));
    let expected = json!({
        "payload": "YPF9vkkwFAAFL+0GhMuOskmO", "gateway_id": "gateway-1",
        "message": {"app_id": owner.app_id, "dev_id": "dev-1", "port": 5, "payload_raw": "Zmlyc3Q="},
        "config": {
            "modulation": "LORA", "data_rate": "SF9BW125", "airtime": 185_344_000, "counter": 20,
            "frequency": 869_525_000, "power": 27,
        },
    });
    assert_eq!(sent, expected);

    send(&owner, &broker, Kind::Unconfirmed, 4, (21, false)).await;
    assert_eq!(payload(&broker).await, "60F17DBE4900150005B773F9722AF047C420DA");
    // The device did not hear it, and repeats its uplink: it gets the same again, with another counter.
    send(&owner, &broker, Kind::Unconfirmed, 4, (22, false)).await;
    let repeated = payload(&broker).await;
    assert_eq!((&repeated[..18], repeated.len()), ("60F17DBE4900160005", 38));
    // It heard it. Nothing more waits, and the network has nothing to say; then it has.
    send(&owner, &broker, Kind::Unconfirmed, 5, (23, false)).await;
    send(&owner, &broker, Kind::Confirmed, 6, (23, true)).await;
    let acknowledgement = payload(&broker).await;
    assert_eq!((&acknowledgement[..16], acknowledgement.len()), ("60F17DBE49201700", 24));
    assert!(broker.has_no_downlink().await);
    network.stack.stop().await;
}

// Conformance: Of templates with one counter, which come when uplinks do at once
#[tokio::test(flavor = "multi_thread")]
async fn a_counter_serves_for_one_downlink_only() {
    let (network, owner, broker) = linked("counting").await;
    let mut listener = owner.listen(&network).await;
    enqueue(&owner, &mut listener, json!({"port": 5, "payload_raw": "Zmlyc3Q="})).await;
    enqueue(&owner, &mut listener, json!({"port": 5, "payload_raw": "c2Vjb25k", "schedule": "last"})).await;
    // After an outage, uplinks come all at once. The network server has prepared the responses to all of them before it
    // knows of a downlink, so they have one counter. It replaces the counter, but cannot encrypt the payload again.
    send(&owner, &broker, Kind::Unconfirmed, 3, (20, false)).await;
    send(&owner, &broker, Kind::Unconfirmed, 4, (20, false)).await;
    send(&owner, &broker, Kind::Confirmed, 5, (20, true)).await;
    assert_eq!(&payload(&broker).await[..18], "60F17DBE4910140005");
    // Nothing is encrypted in an acknowledgement.
    let acknowledgement = payload(&broker).await;
    assert_eq!((&acknowledgement[..16], acknowledgement.len()), ("60F17DBE49201400", 24));
    send(&owner, &broker, Kind::Unconfirmed, 6, (22, false)).await;
    assert_eq!(&payload(&broker).await[..18], "60F17DBE4900160005");
    assert!(broker.has_no_downlink().await);
    network.stack.stop().await;
}

// Conformance: Transmitting downlinks, and acknowledgements
#[tokio::test(flavor = "multi_thread")]
async fn a_downlink_waits_while_no_gateway_can_send_it() {
    let (network, owner, broker) = linked("waiting").await;
    let mut listener = owner.listen(&network).await;
    enqueue(&owner, &mut listener, json!({"port": 5, "payload_raw": "Zmlyc3Q="})).await;
    broker.send(uplink(&owner.app_id, "dev-1", frame(Kind::Unconfirmed, 3), 3)).await;
    event(&mut listener, "up").await;
    assert_eq!(event(&mut listener, "events/down/errors").await["error"], "No gateways available for downlink");
    send(&owner, &broker, Kind::Unconfirmed, 4, (2, false)).await;
    assert_eq!(&payload(&broker).await[..18], "60F17DBE4900020005");
    network.stack.stop().await;
}

// Conformance: An uplink that the network forwards too late gets no downlink
#[tokio::test(flavor = "multi_thread")]
async fn a_downlink_is_not_spent_on_an_uplink_that_the_network_forwards_too_late() {
    let (network, owner, broker) = linked("punctual").await;
    let mut listener = owner.listen(&network).await;
    enqueue(&owner, &mut listener, json!({"port": 5, "payload_raw": "Zmlyc3Q="})).await;
    let now = SystemClock.now();
    let hour_ago = Timestamp::from_millis(now.as_millis() - 3_600_000);
    let uplink = |kind, f_cnt, at| {
        let uplink = uplink(&owner.app_id, "dev-1", frame(kind, f_cnt), f_cnt);
        routed(with_template(uplink, "60F17DBE492002000100000000", 2), at)
    };
    broker.send(uplink(Kind::Confirmed, 3, hour_ago)).await;
    event(&mut listener, "up").await;
    let error = event(&mut listener, "events/down/errors").await;
    assert_eq!(error["error"], "The network forwarded the uplink too late for a downlink");
    // The time that this takes does not matter: it is in the future.
    broker.send(uplink(Kind::Confirmed, 4, now.plus(Duration::from_hours(1)))).await;
    assert_eq!(&payload(&broker).await[..18], "60F17DBE4920020005");
    assert!(broker.has_no_downlink().await, "the late uplink was not even acknowledged");
    network.stack.stop().await;
}

// Conformance: Transmitting downlinks, and acknowledgements
#[tokio::test(flavor = "multi_thread")]
async fn a_confirmed_downlink_is_sent_until_it_is_acknowledged() {
    let (network, owner, broker) = linked("confirming").await;
    let mut listener = owner.listen(&network).await;
    enqueue(&owner, &mut listener, json!({"port": 7, "confirmed": true, "payload_raw": "c3VyZQ=="})).await;
    for (f_cnt, f_cnt_down, expected) in
        [(3, 30, "A0F17DBE49001E0007D55B4BCF419B97D0"), (4, 31, "A0F17DBE49001F000734E5701AE6EF46BE")]
    {
        send(&owner, &broker, Kind::Unconfirmed, f_cnt, (f_cnt_down, false)).await;
        event(&mut listener, "up").await;
        assert_eq!(payload(&broker).await, expected);
        assert_eq!(event(&mut listener, "events/down/sent").await["message"]["confirmed"], true);
    }
    send(&owner, &broker, Kind::Acknowledging, 5, (32, false)).await;
    event(&mut listener, "up").await;
    let acknowledged = event(&mut listener, "events/down/acks").await;
    assert_eq!(acknowledged["message"], json!({"port": 7, "confirmed": true, "payload_raw": "c3VyZQ=="}));
    send(&owner, &broker, Kind::Confirmed, 6, (32, true)).await;
    assert_eq!(payload(&broker).await.len(), 24, "only an acknowledgement");
    network.stack.stop().await;
}

// Conformance: Transmitting downlinks, and acknowledgements
#[tokio::test(flavor = "multi_thread")]
async fn a_downlink_that_is_never_acknowledged_is_given_up() {
    let (network, owner, broker) = linked("stubborn").await;
    let mut listener = owner.listen(&network).await;
    enqueue(&owner, &mut listener, json!({"port": 7, "confirmed": true, "payload_raw": "c3VyZQ=="})).await;
    for f_cnt in 3..11 {
        send(&owner, &broker, Kind::Unconfirmed, f_cnt, (f_cnt as u8, false)).await;
        event(&mut listener, "up").await;
        payload(&broker).await;
        event(&mut listener, "events/down/sent").await;
    }
    send(&owner, &broker, Kind::Unconfirmed, 11, (11, false)).await;
    event(&mut listener, "up").await;
    let given_up = event(&mut listener, "events/down/errors").await;
    assert!(given_up["error"].as_str().unwrap().contains("did not acknowledge"), "{given_up}");
    assert!(broker.has_no_downlink().await);
    network.stack.stop().await;
}

// Conformance: console: a downlink with its state
#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_device_says_that_a_downlink_was_sent_and_then_acknowledged() {
    let (network, owner, broker) = linked("looking").await;
    let visitor = Visitor::logged_in(&network.stack.settings().client.auth_server, "looking").await;
    let page = format!("/console/applications/{}/devices/dev-1", owner.app_id);
    let mut listener = owner.listen(&network).await;
    enqueue(&owner, &mut listener, json!({"port": 7, "confirmed": true, "payload_raw": "c3VyZQ=="})).await;
    visitor.until(&page, "badge\">queued</span> <code>73757265 on port 7</code>").await;
    send(&owner, &broker, Kind::Unconfirmed, 3, (30, false)).await;
    event(&mut listener, "up").await;
    payload(&broker).await;
    let sent = visitor.until(&page, "badge\">sent</span> <code>73757265 on port 7</code>").await.html;
    assert!(sent.contains("has not acknowledged it yet") && !sent.contains("badge\">queued</span>"), "{sent}");
    event(&mut listener, "events/down/sent").await;
    send(&owner, &broker, Kind::Acknowledging, 4, (31, false)).await;
    event(&mut listener, "up").await;
    let acknowledged =
        visitor.until(&page, "badge good\">acknowledged</span> <code>73757265 on port 7</code>").await.html;
    let (_, before) = acknowledged.split_once("Before: ").unwrap();
    assert!(before.starts_with("sent <a ") && before.contains(", queued <a "), "{before}");
    assert_eq!(acknowledged.matches("73757265 on port 7").count(), 1, "it is one row: {acknowledged}");
    network.stack.stop().await;
}
