//! The history of what a bridge has processed.

use std::collections::BTreeSet;

use bridge::Running;
use history::{LIMIT_MAX, Outcome, Query, Record, Settings, StoredHistory};
use serde_json::{Value, json};
use testing::{MqttClient, soon, things_stack_uplink};
use things_stack::ThingsStackBridge;

use crate::harness::{Network, send, topic};

const SCRIPT: &str = "function decodeUplink(input) {
    console.log(input.fPort);
    if (input.bytes[0] > 100) throw new Error('broken');
    return {data: {n: input.bytes[0]}, warnings: ['low']} }
    function normalizeUplink(input) { return {data: {air: {temperature: input.data.n, smell: 1}}} }";

/// A bridge that records.
async fn bridge(network: &Network) -> ThingsStackBridge {
    let bridge = network.try_bridge_with(Some(Settings::default())).await.unwrap();
    soon("the bridge", bridge.ready()).await;
    bridge
}

/// The bridge's records of an application, the oldest first.
async fn records(network: &Network, app_id: &str) -> Vec<Record> {
    let stored = StoredHistory::open(network.dir.path().join("bridge/history")).unwrap();
    let query = Query { oldest_first: true, limit: LIMIT_MAX, ..Query::of(app_id.parse().unwrap()) };
    stored.query(query).await.unwrap().records
}

/// Receives so many uplinks.
async fn receive(application: &mut MqttClient, uplinks: usize) {
    let mut missing = uplinks;
    while missing > 0 {
        missing -= usize::from(application.next().await.topic.ends_with("/up"));
    }
}

// Conformance: An uplink that a bridge has acknowledged
#[tokio::test]
async fn an_uplink_is_recorded_with_what_its_formatter_saw_and_made_of_it() {
    let Some(network) = Network::start().await else { return };
    network.default_script(SCRIPT, "");
    network.device("dev1");
    let bridge = bridge(&network).await;
    let (mut things_stack, mut application) = (network.things_stack().await, network.application().await);
    let mut for_the_network = things_stack_uplink("dev1", 3, "AQ==");
    for_the_network["uplink_message"]["f_port"] = json!(0);
    let uplinks = [things_stack_uplink("dev1", 1, "Bw=="), things_stack_uplink("dev1", 2, "/w=="), for_the_network];
    for uplink in uplinks {
        things_stack.publish(&topic("dev1", "up"), uplink.to_string()).await;
    }
    receive(&mut application, 3).await;
    bridge.stop().await;
    let records = records(&network, "sensors_lab").await;
    let [decoded, failed, unchanged] = &records[..] else { panic!("{records:#?}") };
    for (record, counter, payload) in [(decoded, 1, 7), (failed, 2, 0xff), (unchanged, 3, 1)] {
        assert_eq!((record.dev_id.as_str(), record.counter, &record.payload[..]), ("dev1", counter, &[payload][..]));
        assert_eq!(record.received.to_rfc3339(), format!("2026-11-22T16:00:0{counter}.026368273Z"));
        let metadata: Value = serde_json::from_str(&record.metadata).unwrap();
        assert_eq!((&metadata["data_rate"], &metadata["airtime"]), (&json!("SF7BW125"), &json!(56_576_000)));
        assert_eq!(metadata["gateways"][0]["gtw_id"], "gtw1");
    }
    for record in [decoded, failed] {
        assert_eq!(record.logs, r#"[{"function":"decoder","fields":["2"]}]"#);
        assert!(record.functions.is_some() && record.limits.is_some() && record.seed.is_some() && record.fuel > 0);
        assert!(record.microseconds.is_some_and(|microseconds| microseconds > 0));
    }
    assert_eq!(
        [decoded, failed, unchanged].map(|record| record.outcome),
        [Outcome::Decoded, Outcome::Failed, Outcome::NotConverted]
    );
    assert_eq!(
        (decoded.result.as_str(), decoded.normalized.as_str()),
        (r#"{"n":7}"#, r#"[{"air":{"temperature":7}}]"#)
    );
    assert_eq!(decoded.warnings, r#"["low","measurement 1: unknown field `air.smell`"]"#);
    assert!(failed.failure.as_ref().is_some_and(|failure| failure.contains("broken")), "{failed:?}");
    assert!(unchanged.functions.is_none() && unchanged.result.is_empty());
}

#[tokio::test]
async fn other_messages_are_recorded_under_the_names_that_the_handler_has() {
    let Some(network) = Network::start().await else { return };
    network.default_script(SCRIPT, "function decodeDownlink(input) { return {data: {n: input.bytes[0]}} }");
    network.device("dev1");
    let bridge = bridge(&network).await;
    let (mut things_stack, mut application) = (network.things_stack().await, network.application().await);
    let downlink = json!({"f_port": 1, "frm_payload": "Bw=="});
    for (kind, message) in [
        ("join", json!({"received_at": "2026-11-22T16:00:00Z", "join_accept": {}})),
        ("down/queued", json!({"downlink_queued": downlink})),
        ("down/sent", json!({"downlink_sent": downlink})),
        ("down/ack", json!({"downlink_ack": downlink})),
        ("down/nack", json!({"downlink_nack": downlink})),
        ("down/failed", json!({"downlink_failed": {"downlink": downlink, "error": {"message_format": "no path"}}})),
    ] {
        things_stack.publish(&topic("dev1", kind), message.to_string()).await;
        assert_eq!(application.next().await.topic, topic("dev1", kind));
    }
    application.publish(&topic("dev1", "down/push"), "{}").await;
    assert_eq!(application.next().await.topic, topic("dev1", "down/failed"));
    bridge.stop().await;
    let records = records(&network, "sensors_lab").await;
    let kinds: Vec<_> = records.iter().map(|record| record.kind.as_str()).collect();
    let [scheduled, failed] = ["down/scheduled", "down/errors"];
    assert_eq!(kinds, ["activations", scheduled, "down/sent", "down/acks", failed, failed, failed], "{records:#?}");
    let failures: Vec<_> = records.iter().filter_map(|record| record.failure.as_deref()).collect();
    let [not_acknowledged, no_path, refused] = failures[..] else { panic!("{failures:?}") };
    assert_eq!((not_acknowledged, no_path), ("the device did not acknowledge the downlink", "no path"));
    assert!(refused.contains("`downlinks` is missing"), "{refused}");
    assert!(records.iter().all(|record| record.outcome.is_failure() == record.failure.is_some()), "{records:#?}");
    assert_eq!(records[0].received.to_rfc3339(), "2026-11-22T16:00:00Z");
    let sent: Value = serde_json::from_str(&records[2].result).unwrap();
    assert_eq!(sent["downlink_sent"]["decoded_payload"], json!({"n": 7}));
}

/// The bridge acknowledges these to nobody, but must not forget them when it stops.
// Conformance: An uplink that a bridge has acknowledged
#[tokio::test]
async fn what_is_caught_up_on_while_the_bridge_stops_is_recorded() {
    let Some(network) = Network::start().await else { return };
    network.default_script(SCRIPT, "");
    network.device("dev1");
    let (mut things_stack, mut application) = (network.things_stack().await, network.application().await);
    let first = bridge(&network).await;
    send(&mut things_stack, "dev1", 1, "AQ==").await;
    receive(&mut application, 1).await;
    first.stop().await;
    (2..200).for_each(|counter| network.api.store(things_stack_uplink("dev1", counter, "AQ==")));
    let second = bridge(&network).await;
    receive(&mut application, 1).await;
    second.stop().await;
    let mut last = MqttClient::connect(&network.broker.url()).await;
    last.publish(&topic("dev1", "join"), "{}").await;
    let mut published = BTreeSet::new();
    loop {
        let message = application.next().await;
        if message.topic.ends_with("/join") {
            break;
        }
        published.extend(message.json()["uplink_message"]["f_cnt"].as_u64());
    }
    let recorded = records(&network, "sensors_lab").await;
    let recorded: BTreeSet<u64> = recorded.iter().map(|record| record.counter.into()).collect();
    assert!(published.is_subset(&recorded), "{:?}", published.difference(&recorded));
}
