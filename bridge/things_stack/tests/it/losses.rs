//! Lost connections and restarts: uplinks come from the storage integration, in order and once.

use serde_json::Value;
use testing::{MqttClient, Proxy, things_stack_uplink};

use crate::harness::{Network, next_up, send, topic};

const SCRIPT: &str = "function decodeUplink(input) { return {data: {n: input.bytes[0]}} }";

async fn start() -> Option<(Network, MqttClient, MqttClient)> {
    let network = Network::start().await?;
    network.default_script(SCRIPT, "");
    ["dev0", "dev1"].iter().for_each(|device| network.device(device));
    let (things_stack, application) = (network.things_stack().await, network.application().await);
    Some((network, things_stack, application))
}

/// Publishes uplinks of both devices, and stores them.
async fn send_all(network: &Network, things_stack: &mut MqttClient, counters: std::ops::Range<u32>) {
    for counter in counters {
        for device in ["dev0", "dev1"] {
            network.api.store(things_stack_uplink(device, counter, "AQ=="));
            send(things_stack, device, counter, "AQ==").await;
        }
    }
}

/// Receives uplinks until both devices have all of `counters`, in order; returns how many came twice.
async fn receive(application: &mut MqttClient, counters: u64) -> u64 {
    let (mut next, mut repeated) = ([0; 2], 0);
    while next.iter().any(|next| *next < counters) {
        let up: Value = next_up(application).await;
        assert!(up["uplink_message"].get("decoded_payload").is_some(), "{up}");
        let device = usize::from(up["end_device_ids"]["device_id"] == "dev1");
        let counter = up["uplink_message"]["f_cnt"].as_u64().unwrap();
        assert!(counter <= next[device], "{counter} came before {}", next[device]);
        repeated += u64::from(counter < next[device]);
        next[device] = next[device].max(counter + 1);
    }
    repeated
}

#[tokio::test]
async fn what_came_while_the_bridge_was_down_is_caught_up_on() {
    let Some((network, mut things_stack, mut application)) = start().await else { return };
    let bridge = network.bridge().await;
    send_all(&network, &mut things_stack, 1..20).await;
    // The first one, which came before the bridge was ever connected, is no part of it.
    let first = next_up(&mut application).await;
    assert_eq!(first["uplink_message"]["f_cnt"], 1);
    bridge.stop().await;
    send_all(&network, &mut things_stack, 20..60).await;
    let _bridge = network.bridge().await;
    send_all(&network, &mut things_stack, 60..80).await;
    let mut next = [0; 2];
    while next != [80; 2] {
        let up = next_up(&mut application).await;
        let device = usize::from(up["end_device_ids"]["device_id"] == "dev1");
        let counter = up["uplink_message"]["f_cnt"].as_u64().unwrap();
        assert!(next[device] == 0 || counter <= next[device], "{counter} came before {}", next[device]);
        next[device] = next[device].max(counter + 1);
    }
}

#[tokio::test]
async fn connections_that_are_cut_lose_nothing_and_repeat_nothing() {
    let Some((mut network, mut things_stack, mut application)) = start().await else { return };
    let target = network.server.address();
    let proxy = Proxy::start(Some(target)).await;
    network.settings.mqtt.url = format!("mqtt://{}", proxy.address);
    let _bridge = network.bridge().await;
    for round in 0..5 {
        send_all(&network, &mut things_stack, round * 20..(round + 1) * 20).await;
        proxy.redirect(None).await;
        proxy.redirect(Some(target)).await;
    }
    assert_eq!(receive(&mut application, 100).await, 0);
}

#[tokio::test]
async fn a_killed_bridge_loses_nothing_and_keeps_the_order() {
    let Some((network, mut things_stack, mut application)) = start().await else { return };
    let bridge = network.bridge().await;
    send_all(&network, &mut things_stack, 0..1).await;
    // The positions are written every second.
    while !std::fs::read_to_string(network.dir.path().join("bridge/positions.json"))
        .is_ok_and(|text| text.contains("2026-11-22T16:"))
    {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    send_all(&network, &mut things_stack, 1..20).await;
    // Dropped in the middle of its work, without a word to anybody.
    drop(bridge);
    send_all(&network, &mut things_stack, 20..40).await;
    let _bridge = network.bridge().await;
    send_all(&network, &mut things_stack, 40..60).await;
    receive(&mut application, 60).await;
}

/// Live messages go on without it.
#[tokio::test]
async fn a_bridge_without_the_storage_integration_works() {
    let Some((network, mut things_stack, mut application)) = start().await else { return };
    for refusal in [(404, "not found"), (403, "no rights"), (501, "not implemented"), (503, "later")] {
        network.api.refuse_storage(Some(refusal));
        let bridge = network.bridge().await;
        send(&mut things_stack, "dev0", u32::from(refusal.0), "AQ==").await;
        assert_eq!(next_up(&mut application).await["uplink_message"]["f_cnt"], refusal.0);
        bridge.stop().await;
    }
}

/// More than one page, some of them of the same time.
#[tokio::test]
async fn many_missed_uplinks_come_in_pages() {
    let Some((network, mut things_stack, mut application)) = start().await else { return };
    let bridge = network.bridge().await;
    send(&mut things_stack, "dev0", 0, "AQ==").await;
    next_up(&mut application).await;
    bridge.stop().await;
    for counter in 1..=700 {
        // Three of a time.
        let mut uplink = things_stack_uplink("dev0", counter, "AQ==");
        uplink["received_at"] = things_stack_uplink("dev0", counter / 3 + 1, "AQ==")["received_at"].clone();
        network.api.store(uplink);
    }
    let _bridge = network.bridge().await;
    for counter in 1..=700 {
        assert_eq!(next_up(&mut application).await["uplink_message"]["f_cnt"], counter);
    }
    things_stack.publish(&topic("dev0", "join"), "{}").await;
    assert_eq!(application.next().await.topic, topic("dev0", "join"));
}

/// A page of them is larger than the client takes, and one of them is as well.
#[tokio::test]
async fn missed_uplinks_that_are_large_come_in_smaller_pages() {
    let Some((network, mut things_stack, mut application)) = start().await else { return };
    let bridge = network.bridge().await;
    send(&mut things_stack, "dev0", 0, "AQ==").await;
    next_up(&mut application).await;
    bridge.stop().await;
    for counter in 1..=300 {
        let mut uplink = things_stack_uplink("dev0", counter, "AQ==");
        let size = if counter == 150 { 5 << 20 } else { 30_000 };
        uplink["uplink_message"]["rx_metadata"][0]["uplink_token"] = "A".repeat(size).into();
        network.api.store(uplink);
    }
    let _bridge = network.bridge().await;
    for counter in (1..=300).filter(|counter| *counter != 150) {
        assert_eq!(next_up(&mut application).await["uplink_message"]["f_cnt"], counter);
    }
}
