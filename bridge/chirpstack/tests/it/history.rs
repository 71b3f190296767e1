//! The history of what a bridge has processed.

use std::{fs, path::PathBuf};

use api::{
    chirpstack::CodecRuntime,
    chirpstack_events::integration::{DeviceInfo, JoinEvent},
};
use bridge::{Environment, Running};
use chirpstack::ChirpStackBridge;
use history::{ApplicationSettings, Outcome, Query, Record, Settings, StoredHistory};
use prost::Message;
use serde_json::{Value, json};
use testing::{CHIRPSTACK_APPLICATION, ManualClock, MqttClient, RedisProcess, chirpstack_uplink, soon};

use crate::harness::{Network, command_topic, send, topic, uplink};

const DEVICE: &str = "a300000000000000";
const SCRIPT: &str = "function decodeUplink(input) {
    console.log('port', input.fPort);
    if (input.bytes[0] > 100) throw new Error('broken');
    return {data: {n: input.bytes[0], key: input.variables.key, at: input.recvTime.getTime()}, warnings: ['low']};
}";

/// A bridge that records.
async fn bridge(network: &Network, settings: Settings) -> ChirpStackBridge {
    let environment = Environment { history: Some(settings), ..network.environment("bridge") };
    let bridge = ChirpStackBridge::start(&network.settings, environment).await.unwrap();
    soon("the bridge", bridge.ready()).await;
    bridge
}

/// Receives so many uplinks.
async fn receive(application: &mut MqttClient, uplinks: usize) {
    let mut missing = uplinks;
    while missing > 0 {
        missing -= usize::from(application.next().await.kind() == "event/up");
    }
}

/// The records of the bridge, the oldest first.
async fn records(network: &Network) -> Vec<Record> {
    let stored = StoredHistory::open(network.dir.path().join("bridge/history")).unwrap();
    assert!(stored.skipped().is_empty());
    let query = Query { oldest_first: true, ..Query::of(CHIRPSTACK_APPLICATION.parse().unwrap()) };
    stored.query(query).await.unwrap().records
}

fn check_decoded_and_failed(records: &[Record]) {
    let [decoded, failed] = records else { panic!("{records:#?}") };
    for (record, counter, payload) in [(decoded, 1, 1), (failed, 2, 0xff)] {
        assert_eq!((record.dev_id.as_str(), record.counter, record.port), (DEVICE, counter, 2));
        assert_eq!((&record.payload[..], record.confirmed), (&[payload][..], counter == 2));
        assert_eq!(record.received.to_rfc3339(), "2026-11-22T16:45:55.231022372Z");
        assert_eq!(record.extra, r#"{"variables":{"key":"secret"}}"#);
        assert_eq!(record.logs, r#"[{"function":"decoder","fields":["\"port\"","2"]}]"#);
        assert!(record.functions.is_some() && record.limits.is_some() && record.seed.is_some() && record.fuel > 0);
        assert!(record.microseconds.is_some_and(|microseconds| microseconds > 0));
        let metadata: Value = serde_json::from_str(&record.metadata).unwrap();
        assert_eq!(
            (&metadata["device_profile_id"], &metadata["device_profile_name"]),
            (&json!(DEVICE), &json!(DEVICE))
        );
        assert_eq!((&metadata["data_rate"], &metadata["coding_rate"]), (&json!("SF7BW125"), &json!("4/5")));
        assert_eq!(metadata["time"], "2026-11-22T16:45:55.231022372Z");
        let gateway = &metadata["gateways"][0];
        assert_eq!((&gateway["gtw_id"], &gateway["rssi"]), (&json!("eui-0102030405060708"), &json!(-60.0)));
    }
    assert_eq!((decoded.functions, decoded.limits), (failed.functions, failed.limits));
    assert_eq!((decoded.outcome, failed.outcome), (Outcome::Decoded, Outcome::Failed));
    let result = json!({"n": 1, "key": "secret", "at": 1_795_365_955_231_i64});
    assert_eq!(serde_json::from_str::<Value>(&decoded.result).unwrap(), result);
    assert_eq!((decoded.warnings.as_str(), failed.result.as_str()), (r#"["low"]"#, ""));
    assert_eq!(decoded.failure, None);
    assert!(failed.failure.as_ref().is_some_and(|failure| failure.contains("broken")), "{failed:?}");
}

/// The same over MQTT and from the stream, of which each has a form of its own.
// Conformance: An uplink that a bridge has acknowledged
#[tokio::test]
async fn an_uplink_is_recorded_with_what_its_codec_saw_and_made_of_it() {
    let events = || {
        [(1, "AQ==", false), (2, "/w==", true)].map(|(counter, data, confirmed)| {
            let mut event = uplink(DEVICE, counter, data);
            event["confirmed"] = json!(confirmed);
            event
        })
    };
    for is_stream in [false, true] {
        let Some(mut network) = Network::start().await else { return };
        network.device(DEVICE, SCRIPT);
        network.api.set_device(DEVICE, DEVICE, &[("key", "secret")]);
        let Some(redis) = RedisProcess::start() else { return };
        if is_stream {
            network.settings.redis.url = redis.url();
        }
        let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
        let bridge = bridge(&network, Settings::default()).await;
        for event in events() {
            if is_stream {
                redis.call(&[b"XADD", b"device:stream:event", b"*", b"up", &chirpstack_uplink(&event)]);
            } else {
                chirpstack.publish(&topic(DEVICE, "up"), event.to_string()).await;
            }
        }
        receive(&mut application, 2).await;
        bridge.stop().await;
        check_decoded_and_failed(&records(&network).await);
        let limits = fs::read_to_string(network.dir.path().join("bridge/history/limits.jsonl")).unwrap();
        assert!(limits.contains("\"fuel\":"), "{limits}");
    }
}

// Conformance: An uplink that a bridge has acknowledged
#[tokio::test]
async fn uplinks_that_no_codec_ran_for_are_recorded_and_copies_are_not() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICE, SCRIPT);
    let (without, unknown) = ("a300000000000001", "a300000000000002");
    network.api.set_profile(without, CodecRuntime::None, "");
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    let bridge = bridge(&network, Settings::default()).await;
    let mut for_the_network = uplink(DEVICE, 1, "AQ==");
    for_the_network["fPort"] = json!(0);
    for _ in 0..2 {
        chirpstack.publish(&topic(DEVICE, "up"), for_the_network.to_string()).await;
    }
    receive(&mut application, 1).await;
    send(&mut chirpstack, without, 2, "AQ==").await;
    receive(&mut application, 1).await;
    send(&mut chirpstack, unknown, 3, "AQ==").await;
    receive(&mut application, 1).await;
    bridge.stop().await;
    let records = records(&network).await;
    let outcomes = [Outcome::NotConverted, Outcome::NotConverted, Outcome::Failed];
    assert_eq!(records.iter().map(|record| record.outcome).collect::<Vec<_>>(), outcomes);
    assert_eq!(records.iter().map(|record| record.counter).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(records.iter().all(|record| record.functions.is_none() && record.payload == [1]), "{records:#?}");
    assert!(records.iter().all(|record| record.microseconds.is_none()), "{records:#?}");
    assert!(
        records[2].failure.as_ref().is_some_and(|failure| failure.contains("has no device profile")),
        "{records:#?}"
    );
}

#[tokio::test]
async fn other_events_and_commands_are_recorded_under_the_names_that_the_handler_has() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICE, SCRIPT);
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    let bridge = bridge(&network, Settings::default()).await;
    for (event, body) in [
        ("join", "{ \"devAddr\": \"00030000\",\n \"time\": \"2026-11-22T16:45:55Z\" }"),
        ("txack", r#"{"downlinkId":1}"#),
        // A copy, and what is no JSON.
        ("txack", r#"{"downlinkId":1}"#),
        ("ack", "acknowledged"),
        ("ack", r#"{"acknowledged":true}"#),
        ("log", r#"{"code":"EXPIRED","description":"too late"}"#),
        ("of-next-year", "{}"),
    ] {
        chirpstack.publish(&topic(DEVICE, event), body).await;
    }
    while application.next().await.kind() != "event/of-next-year" {}
    for command in [json!({"devEui": DEVICE, "fPort": 9, "data": "Bw=="}), json!({"devEui": DEVICE, "object": {}})] {
        application.publish(&command_topic(DEVICE), command.to_string()).await;
    }
    while application.next().await.kind() != "event/log" {}
    bridge.stop().await;
    let records = records(&network).await;
    let [joined, sent, acknowledged, expired, scheduled, refused] = &records[..] else { panic!("{records:#?}") };
    for (record, kind, is_failure) in [
        (joined, "activations", false),
        (sent, "down/sent", false),
        (acknowledged, "down/acks", false),
        (expired, "down/errors", true),
        (scheduled, "down/scheduled", false),
        (refused, "down/errors", true),
    ] {
        assert_eq!((record.dev_id.as_str(), record.kind.as_str()), (DEVICE, kind), "{record:#?}");
        assert_eq!((record.outcome.is_failure(), record.failure.is_some()), (is_failure, is_failure), "{record:#?}");
    }
    assert_eq!(joined.result, r#"{"devAddr":"00030000","time":"2026-11-22T16:45:55Z"}"#);
    assert_eq!(joined.received.to_rfc3339(), "2026-11-22T16:45:55Z");
    assert_eq!(expired.failure.as_deref(), Some("too late"));
    let command: Value = serde_json::from_str(&scheduled.result).unwrap();
    assert_eq!((&command["fPort"], &command["data"]), (&json!(9), &json!("Bw==")));
    let refusal: Value = serde_json::from_str(&refused.result).unwrap();
    assert_eq!(
        (refusal["code"].as_str(), refusal["description"].as_str()),
        (Some("DOWNLINK_CODEC"), refused.failure.as_deref())
    );
}

#[tokio::test]
async fn an_event_of_a_stream_is_recorded_as_json() {
    let Some(mut network) = Network::start().await else { return };
    let Some(redis) = RedisProcess::start() else { return };
    network.settings.redis.url = redis.url();
    let mut application = network.application().await;
    let bridge = bridge(&network, Settings::default()).await;
    let (application_id, dev_eui) = (CHIRPSTACK_APPLICATION.to_owned(), DEVICE.to_owned());
    let device_info = Some(DeviceInfo { application_id, dev_eui, ..DeviceInfo::default() });
    let joined = JoinEvent { dev_addr: "00030000".to_owned(), device_info, ..JoinEvent::default() };
    redis.call(&[b"XADD", b"device:stream:event", b"*", b"join", &joined.encode_to_vec()]);
    assert_eq!(application.next().await.kind(), "event/join");
    bridge.stop().await;
    let records = records(&network).await;
    let [joined] = &records[..] else { panic!("{records:#?}") };
    let body: Value = serde_json::from_str(&joined.result).unwrap();
    assert_eq!((joined.kind.as_str(), body["devAddr"].as_str()), ("activations", Some("00030000")));
}

/// Who may publish on the broker can invent applications, and each makes a file.
#[tokio::test]
async fn few_applications_are_recorded_that_the_network_does_not_have_and_all_that_it_has() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICE, SCRIPT);
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    // The hour does not end meanwhile.
    let environment =
        Environment { history: Some(Settings::default()), clock: ManualClock::new(), ..network.environment("bridge") };
    let bridge = ChirpStackBridge::start(&network.settings, environment).await.unwrap();
    soon("the bridge", bridge.ready()).await;
    for number in 0..100 {
        let topic = format!("application/invented-{number}/device/{DEVICE}/event/status");
        chirpstack.publish(&topic, r#"{"margin":7}"#).await;
    }
    send(&mut chirpstack, DEVICE, 1, "AQ==").await;
    receive(&mut application, 1).await;
    bridge.stop().await;
    assert_eq!(records(&network).await.len(), 1);
    let stored = StoredHistory::open(network.dir.path().join("bridge/history")).unwrap();
    assert_eq!(stored.applications().unwrap().len(), 64 + 1);
    let known = async {
        let file = network.dir.path().join("bridge/applications");
        while fs::read_to_string(&file).unwrap() != format!("{CHIRPSTACK_APPLICATION}\n") {
            tokio::task::yield_now().await;
        }
    };
    soon("the known application", known).await;
}

#[tokio::test]
async fn settings_switch_history_off() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICE, SCRIPT);
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    let off = bridge(&network, Settings { bytes_max: 0, ..Settings::default() }).await;
    send(&mut chirpstack, DEVICE, 1, "AQ==").await;
    receive(&mut application, 1).await;
    off.stop().await;
    assert!(!network.dir.path().join("bridge/history").exists());
}

/// A handler with the same settings may have an application of somebody else with the same id.
#[tokio::test]
async fn a_directory_of_handlers_has_the_records_of_a_bridge_apart() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICE, SCRIPT);
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    let shared = network.dir.path().join("shared");
    let bridge = bridge(&network, Settings { dir: Some(shared.clone()), ..Settings::default() }).await;
    send(&mut chirpstack, DEVICE, 1, "AQ==").await;
    receive(&mut application, 1).await;
    bridge.stop().await;
    let applications = |dir: PathBuf| StoredHistory::open(dir).unwrap().applications().unwrap().len();
    assert_eq!((applications(shared.join("bridge/bridge")), applications(shared)), (1, 0));
}

#[tokio::test]
async fn an_application_can_be_left_out() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICE, SCRIPT);
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    let nothing = ApplicationSettings { bytes_max: Some(0), ..ApplicationSettings::default() };
    let applications = [(CHIRPSTACK_APPLICATION.parse().unwrap(), nothing)].into();
    let bridge = bridge(&network, Settings { applications, ..Settings::default() }).await;
    send(&mut chirpstack, DEVICE, 1, "AQ==").await;
    receive(&mut application, 1).await;
    bridge.stop().await;
    assert!(records(&network).await.is_empty());
}

/// The disk is not ours to repair: messages go on, and are not sent again because of it.
// Conformance: An uplink that a bridge has acknowledged
#[tokio::test]
async fn what_cannot_be_recorded_is_published_and_acknowledged() {
    let Some(network) = Network::start().await else { return };
    network.device(DEVICE, SCRIPT);
    let (mut chirpstack, mut application) = (network.chirpstack().await, network.application().await);
    let first = bridge(&network, Settings::default()).await;
    fs::remove_dir_all(network.dir.path().join("bridge/history/tail")).unwrap();
    send(&mut chirpstack, DEVICE, 1, "AQ==").await;
    receive(&mut application, 1).await;
    first.stop().await;
    assert!(records(&network).await.is_empty());
    let _second = network.bridge().await;
    send(&mut chirpstack, DEVICE, 2, "AQ==").await;
    loop {
        let message = application.next().await;
        if message.kind() == "event/up" {
            assert_eq!(message.json()["fCnt"], 2, "the first came again");
            break;
        }
    }
}
