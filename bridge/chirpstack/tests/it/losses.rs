//! Lost connections and restarts: nothing is lost, and the uplinks of a device keep their order.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::Value;
use testing::{Mosquitto, MqttClient, Proxy};

use crate::harness::{Network, send, topic, uplink};

pub const SCRIPT: &str = "function decodeUplink(input) { return {data: {n: input.bytes[0]}} }";
pub const DEVICES: [&str; 3] = ["a300000000000000", "a300000000000001", "a300000000000002"];

/// Receives uplinks until each device has all of `counters`, each at least once, and each first copy in order.
pub async fn receive(application: &mut MqttClient, counters: u64) {
    receive_range(application, 0..counters).await;
}

/// The same, if those before `counters` have been received; they may come again.
pub async fn receive_range(application: &mut MqttClient, counters: std::ops::Range<u64>) {
    let mut next: BTreeMap<String, u64> = DEVICES.map(|device| (device.to_owned(), counters.start)).into();
    while next.values().any(|next| *next < counters.end) {
        let up: Value = application.next().await.json();
        assert!(up.get("object").is_some(), "{up}");
        let expected = next.get_mut(up["deviceInfo"]["devEui"].as_str().unwrap()).unwrap();
        let counter = up["fCnt"].as_u64().unwrap();
        assert!(counter <= *expected, "{counter} came before {expected}");
        *expected = (*expected).max(counter + 1);
    }
}

async fn send_all(chirpstack: &mut MqttClient, counters: std::ops::Range<u32>) {
    for counter in counters {
        for device in DEVICES {
            send(chirpstack, device, counter, "AQ==").await;
        }
    }
}

#[tokio::test]
async fn a_bridge_that_restarts_loses_nothing() {
    let Some(network) = Network::start().await else { return };
    DEVICES.iter().for_each(|device| network.device(device, SCRIPT));
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    let bridge = network.bridge().await;
    send_all(&mut chirpstack, 0..20).await;
    // Dropped in the middle of its work, without a word to the broker.
    drop(bridge);
    send_all(&mut chirpstack, 20..40).await;
    let bridge = network.bridge().await;
    send_all(&mut chirpstack, 40..60).await;
    bridge.stop().await;
    send_all(&mut chirpstack, 60..80).await;
    let _bridge = network.bridge().await;
    receive(&mut application, 80).await;
}

#[tokio::test]
async fn connections_that_are_cut_lose_nothing() {
    let Some(mut network) = Network::start().await else { return };
    DEVICES.iter().for_each(|device| network.device(device, SCRIPT));
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    let target = network.broker.address();
    let proxy = Proxy::start(Some(target)).await;
    network.settings.mqtt.url = format!("mqtt://{}", proxy.address);
    let _bridge = network.bridge().await;
    for round in 0..5 {
        send_all(&mut chirpstack, round * 20..(round + 1) * 20).await;
        proxy.redirect(None).await;
        proxy.redirect(Some(target)).await;
    }
    receive(&mut application, 100).await;
}

/// Mosquitto 2.0 forgets shared subscriptions when it restarts, so the single bridge has one of its own.
#[tokio::test]
async fn a_broker_that_restarts_loses_nothing() {
    let Some(mut network) = Network::start().await else { return };
    DEVICES.iter().for_each(|device| network.device(device, SCRIPT));
    network.settings.shared_subscription = false;
    let mut application = MqttClient::connect_as(&network.broker.url(), "application").await;
    application.subscribe("airlock/#").await;
    let _bridge = network.bridge().await;
    let mut chirpstack = network.chirpstack().await;
    send_all(&mut chirpstack, 0..20).await;
    network.broker.stop();
    network.broker.start_again();
    let mut chirpstack = network.chirpstack().await;
    send_all(&mut chirpstack, 20..40).await;
    receive(&mut application, 40).await;
}

#[tokio::test]
async fn an_output_that_is_away_holds_messages_back() {
    let Some(mut network) = Network::start().await else { return };
    DEVICES.iter().for_each(|device| network.device(device, SCRIPT));
    let target = Mosquitto::start().unwrap();
    let mut application = MqttClient::connect(&target.url()).await;
    // On another broker the topics are ChirpStack's own.
    application.subscribe("application/+/device/+/event/up").await;
    let proxy = Proxy::start(Some(target.address())).await;
    network.settings.to.url = format!("mqtt://{}", proxy.address);
    let _bridge = network.bridge().await;
    proxy.redirect(None).await;
    let mut chirpstack = network.chirpstack().await;
    send_all(&mut chirpstack, 0..20).await;
    proxy.redirect(Some(target.address())).await;
    receive(&mut application, 20).await;
}

/// Otherwise the broker would send them again on the next start.
#[tokio::test]
async fn a_bridge_that_stops_has_sent_its_acknowledgements() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICES[0], SCRIPT);
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    for round in 0..5 {
        let bridge = network.bridge().await;
        for counter in 0..50 {
            send(&mut chirpstack, DEVICES[0], round * 50 + counter, "AQ==").await;
        }
        for counter in 0..50 {
            assert_eq!(application.next().await.json()["fCnt"], round * 50 + counter);
        }
        bridge.stop().await;
    }
}

/// The broker refuses what one application gets, and there is room for few messages.
#[tokio::test]
async fn an_application_that_may_receive_nothing_holds_up_no_other() {
    let configuration = "allow_anonymous true\nacl_file DIR/acl";
    let Some(target) =
        Mosquitto::start_with_files(configuration, &[("acl", "topic readwrite #\ntopic deny application/refused/#\n")])
    else {
        return;
    };
    let Some(mut network) = Network::start().await else { return };
    network.device(DEVICES[0], SCRIPT);
    network.settings.to.url = target.url();
    network.settings.in_flight_max = 4;
    network.settings.refused_wait_ms_max = 1;
    let mut application = MqttClient::connect(&target.url()).await;
    application.subscribe("application/+/device/+/event/up").await;
    let _bridge = network.bridge().await;
    let mut chirpstack = network.chirpstack().await;
    for number in 0..20 {
        chirpstack.publish(&format!("application/refused/device/{number}/event/join"), "{}").await;
    }
    send(&mut chirpstack, DEVICES[0], 1, "AQ==").await;
    assert_eq!(application.next().await.json()["fCnt"], 1);
}

/// Returns true if the bytes start with a PUBLISH packet.
fn is_publish(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 3)
}

/// A broker that is stopping, or that has no memory left.
#[tokio::test]
async fn a_broker_that_closes_connections_for_a_while_loses_nothing() {
    let Some(mut network) = Network::start().await else { return };
    DEVICES.iter().for_each(|device| network.device(device, SCRIPT));
    let target = Mosquitto::start().unwrap();
    let mut application = MqttClient::connect(&target.url()).await;
    application.subscribe("application/+/device/+/event/up").await;
    let closed = AtomicU32::new(0);
    let passes = move |packet: &[u8]| !is_publish(packet) || closed.fetch_add(1, Ordering::Relaxed) >= 15;
    let proxy = Proxy::start_filtered(target.address(), passes).await;
    network.settings.to.url = format!("mqtt://{}", proxy.address);
    let _bridge = network.bridge().await;
    let mut chirpstack = network.chirpstack().await;
    send_all(&mut chirpstack, 0..20).await;
    receive(&mut application, 20).await;
}

/// With the default of five minutes, which nobody has to wait for.
#[tokio::test]
async fn one_topic_at_which_the_broker_closes_connections_holds_up_no_other() {
    let Some(mut network) = Network::start().await else { return };
    DEVICES.iter().for_each(|device| network.device(device, SCRIPT));
    let target = Mosquitto::start().unwrap();
    let mut application = MqttClient::connect(&target.url()).await;
    application.subscribe("application/+/device/+/event/up").await;
    let is_forbidden = |packet: &[u8]| packet.windows(9).any(|part| part == b"forbidden");
    let passes = move |packet: &[u8]| !is_publish(packet) || !is_forbidden(packet);
    let proxy = Proxy::start_filtered(target.address(), passes).await;
    network.settings.to.url = format!("mqtt://{}", proxy.address);
    network.settings.in_flight_max = 16;
    let _bridge = network.bridge().await;
    let mut chirpstack = network.chirpstack().await;
    for counter in 0..20 {
        chirpstack.publish(&format!("application/forbidden/device/{counter}/event/join"), "{}").await;
        send_all(&mut chirpstack, counter..counter + 1).await;
    }
    receive(&mut application, 20).await;
}

/// It closes the connection when a packet is too large, which MQTT 3.1.1 does not tell before.
#[tokio::test]
async fn a_message_that_closes_the_connection_is_given_up() {
    let Some(target) = Mosquitto::start_with("allow_anonymous true\nmax_packet_size 4000") else { return };
    let Some(mut network) = Network::start().await else { return };
    network.device(DEVICES[0], SCRIPT);
    let proxy = Proxy::start_mqtt311(target.address()).await;
    network.settings.to.url = format!("mqtt://{}", proxy.address);
    network.settings.refused_wait_ms_max = 1;
    let mut application = MqttClient::connect(&target.url()).await;
    application.subscribe("application/+/device/+/event/up").await;
    let _bridge = network.bridge().await;
    let mut chirpstack = network.chirpstack().await;
    send(&mut chirpstack, DEVICES[0], 0, "AQ==").await;
    let mut large = uplink(DEVICES[0], 1, "AQ==");
    large["new"] = "x".repeat(5000).into();
    chirpstack.publish(&topic(DEVICES[0], "up"), large.to_string()).await;
    send(&mut chirpstack, DEVICES[0], 2, "AQ==").await;
    for counter in [0, 2] {
        assert_eq!(application.next().await.json()["fCnt"], counter);
    }
}

/// Neither breaks the connection, to be sent again on the next one.
#[tokio::test]
async fn what_is_too_large_is_dropped_with_mqtt_3_1_1_too() {
    let Some(mut network) = Network::start().await else { return };
    network.device(DEVICES[0], SCRIPT);
    let proxy = Proxy::start_mqtt311(network.broker.address()).await;
    network.settings.mqtt.url = format!("mqtt://{}", proxy.address);
    let mut application = network.application().await;
    let _bridge = network.bridge().await;
    let mut chirpstack = network.chirpstack().await;
    // Too large to be received, and too large to be published.
    for (counter, bytes) in [(0, (1 << 20) + 1), (1, (1 << 20) - 20)] {
        let mut large = uplink(DEVICES[0], counter, "AQ==");
        large["new"] = "".into();
        large["new"] = "x".repeat(bytes - large.to_string().len()).into();
        chirpstack.publish(&topic(DEVICES[0], "up"), large.to_string()).await;
    }
    send(&mut chirpstack, DEVICES[0], 2, "AQ==").await;
    assert_eq!(application.next().await.json()["fCnt"], 2);
}

/// A broker keeps the subscriptions of a session, so one that is no longer wanted has to be given up.
#[tokio::test]
async fn a_bridge_that_no_longer_shares_its_subscription_gets_each_command_once() {
    let Some(mut network) = Network::start().await else { return };
    network.device(DEVICES[0], SCRIPT);
    network.bridge().await.stop().await;
    network.settings.shared_subscription = false;
    let _bridge = network.bridge().await;
    let mut chirpstack = network.chirpstack().await;
    chirpstack.subscribe("application/+/device/+/command/down").await;
    let mut application = network.chirpstack().await;
    for port in 1..4 {
        let command = serde_json::json!({"devEui": DEVICES[0], "fPort": port, "data": "AQ=="});
        application.publish(&crate::harness::command_topic(DEVICES[0]), command.to_string()).await;
        assert_eq!(chirpstack.next().await.json()["fPort"], port);
    }
}
