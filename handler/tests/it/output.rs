//! The MQTT output: keeps messages in order, never waits, and reconnects.

use handler::output::{
    Event, Output,
    mqtt::{MqttOutput, MqttOutputSettings},
};
use mqtt::Endpoint;
use serde_json::{Value, json};
use testing::Proxy;
use types::{Activation, DeviceEvent, DownlinkEvent, ErrorEvent, Timestamp};

use crate::{
    harness::{Harness, becomes, message, same_bytes, uplink},
    mqtt_client::MqttClient,
};

/// The broker of `harness`, by way of `proxy`.
fn endpoint(harness: &Harness, proxy: &Proxy) -> Endpoint {
    Endpoint { address: proxy.address, ..harness.broker.internal() }
}

fn engine(harness: &Harness) -> Option<std::net::SocketAddr> {
    Some(harness.broker.internal().address)
}

fn connect(endpoint: &Endpoint, settings: &MqttOutputSettings) -> MqttOutput {
    MqttOutput::connect(endpoint, settings, &same_bytes())
}

async fn subscriber(harness: &Harness) -> MqttClient {
    MqttClient::connect(harness.broker.address(), "app-one", "#").await
}

/// The counter of the next uplink.
async fn next_counter(client: &mut MqttClient) -> u64 {
    let uplink: Value = serde_json::from_str(&client.next().await.1).unwrap();
    uplink["counter"].as_u64().unwrap()
}

#[tokio::test]
async fn publishes_events_in_order_under_their_topics() {
    let harness = Harness::start().await;
    let mut subscriber = subscriber(&harness).await;
    let output = harness.output().await;
    let error = ErrorEvent { error: "no".to_owned() };
    let activation = Activation::default();
    let downlink = DownlinkEvent { error: Some("no".to_owned()), message: None };
    let device =
        DeviceEvent { latitude: None, longitude: None, altitude: Some(3), update_at: Timestamp::from_millis(1) };
    let activation_json = r#"{"app_eui":"","dev_eui":"","dev_addr":"","metadata":{"time":""}}"#;
    let device_json = r#"{"altitude":3,"update_at":"1970-01-01T00:00:00.001Z"}"#;
    for (event, topic, body) in [
        (Event::UpError(error), "events/up/errors", r#"{"error":"no"}"#),
        (Event::Activation(activation.clone()), "events/activations", activation_json),
        (Event::ActivationError(activation), "events/activations/errors", activation_json),
        (Event::DownlinkScheduled(downlink.clone()), "events/down/scheduled", r#"{"error":"no"}"#),
        (Event::DownlinkError(downlink), "events/down/errors", r#"{"error":"no"}"#),
        (Event::Create(None), "events/create", "null"),
        (Event::Create(Some(device.clone())), "events/create", device_json),
        (Event::Update(device), "events/update", device_json),
        (Event::Delete, "events/delete", "null"),
    ] {
        output.publish(message("app-one", event));
        assert_eq!(subscriber.next().await, (format!("app-one/devices/dev/{topic}"), body.to_owned()));
    }
    output.publish(uplink("app-one", 7, None));
    let expected = json!({
        "app_id": "app-one", "dev_id": "dev", "port": 1, "counter": 7, "payload_raw": null, "metadata": { "time": "" },
    });
    assert_eq!(subscriber.next().await, ("app-one/devices/dev/up".to_owned(), expected.to_string()));
}

#[tokio::test]
async fn publishes_queued_messages_in_order_after_a_reconnection() {
    let before = Harness::start().await;
    let proxy = Proxy::start(engine(&before)).await;
    let mut first = subscriber(&before).await;
    let output = connect(&endpoint(&before, &proxy), &Default::default());
    becomes(output.connected(), true).await;
    output.publish(uplink("app-one", 1000, None));
    assert_eq!(next_counter(&mut first).await, 1000);

    before.broker.shutdown().await;
    becomes(output.connected(), false).await;
    for counter in 0..100 {
        output.publish(uplink("app-one", counter, None));
    }

    let after = Harness::start().await;
    let mut second = subscriber(&after).await;
    proxy.redirect(engine(&after));
    for counter in 0..100 {
        assert_eq!(next_counter(&mut second).await, counter);
    }
}

#[tokio::test]
async fn keeps_order_and_queued_messages_when_the_connection_breaks_repeatedly() {
    let harness = Harness::start().await;
    let proxy = Proxy::start(engine(&harness)).await;
    let mut subscriber = subscriber(&harness).await;
    let output = connect(&endpoint(&harness, &proxy), &Default::default());
    for round in 1..=3 {
        becomes(output.connected(), true).await;
        // More than the connection can send before it is cut: the last of them stay in the queue.
        proxy.redirect(engine(&harness));
        for number in 1..=1000 {
            output.publish(uplink("app-one", round * 1000 + number, None));
        }
        becomes(output.connected(), false).await;
    }
    let mut last = 0;
    let mut ends = Vec::new();
    while last < 4000 {
        let counter = next_counter(&mut subscriber).await;
        assert!(last < counter, "{counter} after {last}");
        ends.extend((counter % 1000 == 0).then_some(counter));
        last = counter;
    }
    assert_eq!(ends, [2000, 3000, 4000]);
}

#[tokio::test]
async fn drops_new_messages_without_waiting_when_the_queue_is_full() {
    let harness = Harness::start().await;
    let proxy = Proxy::start(None).await;
    let mut subscriber = subscriber(&harness).await;
    let settings = MqttOutputSettings { queue_messages_max: 20, ..Default::default() };
    let output = connect(&endpoint(&harness, &proxy), &settings);
    for counter in 0..100 {
        output.publish(uplink("app-one", counter, None));
    }
    proxy.redirect(engine(&harness));
    for counter in 0..10 {
        assert_eq!(next_counter(&mut subscriber).await, counter);
    }
    output.publish(uplink("app-one", 1000, None));
    assert_eq!(next_counter(&mut subscriber).await, 1000);
}

#[tokio::test]
async fn a_busy_application_leaves_room_in_the_queue_for_others() {
    let harness = Harness::start().await;
    let proxy = Proxy::start(None).await;
    let mut quiet = subscriber(&harness).await;
    let settings = MqttOutputSettings { queue_messages_max: 20, ..Default::default() };
    let output = connect(&endpoint(&harness, &proxy), &settings);
    for counter in 0..1000 {
        output.publish(uplink("app-two", counter, None));
    }
    output.publish(uplink("app-one", 1, None));
    proxy.redirect(engine(&harness));
    assert_eq!(next_counter(&mut quiet).await, 1);
}

#[tokio::test]
async fn drops_a_message_that_is_too_large_and_stays_connected() {
    let harness = Harness::start().await;
    let mut subscriber = subscriber(&harness).await;
    let output = harness.output().await;
    let mut connected = output.connected();
    assert!(*connected.borrow_and_update());
    output.publish(uplink("app-one", 1, Some(&json!({ "text": "x".repeat(300_000) }).to_string())));
    output.publish(uplink("app-one", 2, None));
    assert_eq!(next_counter(&mut subscriber).await, 2);
    assert!(!connected.has_changed().unwrap());
}

#[tokio::test]
async fn publishes_queued_messages_before_it_closes() {
    let harness = Harness::start().await;
    let mut subscriber = subscriber(&harness).await;
    let output = harness.output().await;
    for counter in 0..500 {
        output.publish(uplink("app-one", counter, None));
    }
    output.close(crate::harness::PATIENCE).await;
    for counter in 0..500 {
        assert_eq!(next_counter(&mut subscriber).await, counter);
    }
}

#[tokio::test]
async fn publishes_field_topics_only_if_enabled() {
    let harness = Harness::start().await;
    let mut subscriber = subscriber(&harness).await;
    let fields = r#"{"temperature":21.5,"gps":{"lat":1}}"#;
    let plain = harness.output().await;
    plain.publish(uplink("app-one", 1, Some(fields)));
    plain.publish(uplink("app-one", 2, None));
    assert_eq!((next_counter(&mut subscriber).await, next_counter(&mut subscriber).await), (1, 2));

    let output = connect(&harness.broker.internal(), &MqttOutputSettings { field_topics: true, ..Default::default() });
    becomes(output.connected(), true).await;
    output.publish(uplink("app-one", 3, Some(fields)));
    assert_eq!(next_counter(&mut subscriber).await, 3);
    for (topic, body) in [("up/temperature", "21.5"), ("up/gps", r#"{"lat":1}"#), ("up/gps/lat", "1")] {
        assert_eq!(subscriber.next().await, (format!("app-one/devices/dev/{topic}"), body.to_owned()));
    }
}
