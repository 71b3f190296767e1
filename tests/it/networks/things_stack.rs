//! Devices of The Things Stack as devices of v2.

use std::path::Path;

use serde_json::{Value, json};
use testing::{Mosquitto, MqttClient, THINGS_STACK_APPLICATION, THINGS_STACK_KEY, ThingsStackApi, things_stack_uplink};

use super::harness::{Server, next_downlink_event, send_down};
use crate::harness::{
    MESSAGE_TIMEOUT, complaint, run,
    server_process::{ServerProcess, serve},
};

const DEV_EUI: &str = "0004A30B001C0530";

/// The Things Stack's MQTT server and API.
struct ThingsStack {
    broker: Mosquitto,
    api: ThingsStackApi,
    client: MqttClient,
}

impl ThingsStack {
    async fn start() -> Option<Self> {
        server::system::install_crypto();
        let (broker, api) = (Mosquitto::start()?, ThingsStackApi::start().await);
        api.set_device(
            "sensors",
            "kitchen",
            json!({
                "ids": {"device_id": "kitchen", "dev_eui": DEV_EUI}, "attributes": {"room": "2nd floor"},
            }),
        );
        let client = MqttClient::connect(&broker.url()).await;
        Some(Self { broker, api, client })
    }

    fn settings(&self, dir: &Path) {
        std::fs::write(dir.join("app.key"), THINGS_STACK_KEY).unwrap();
        let text = format!(
            "[[bridge]]\nthings_stack.api.url = '{}'\nthings_stack.mqtt.url = '{}'\n\
             things_stack.key_file = '{}'\n\n\
             [[bridge.applications]]\napplication = '{THINGS_STACK_APPLICATION}'\napp_id = 'meadow-app'\n\
             register = true\n",
            self.api.url(),
            self.broker.url(),
            dir.join("app.key").display(),
        );
        std::fs::write(dir.join("airlock.toml"), text).unwrap();
    }

    async fn send(&mut self, device: &str, kind: &str, message: &Value) {
        let topic = format!("v3/{THINGS_STACK_APPLICATION}/devices/{device}/{kind}");
        self.client.publish(&topic, message.to_string()).await;
    }

    /// Waits for the next downlink at the API; returns its operation, and the downlink with its correlation ids.
    async fn next_downlink(&self) -> (String, Value) {
        let found = async {
            loop {
                if let Some((path, body)) = self.api.next_downlink() {
                    return (path, body["downlinks"][0].clone());
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(MESSAGE_TIMEOUT, found).await.expect("a downlink reaches The Things Stack")
    }

    /// A report about a downlink.
    async fn report(&mut self, kind: &str, member: &str, content: Value) {
        let mut message = things_stack_uplink("kitchen", 0, "");
        message.as_object_mut().unwrap().remove("uplink_message");
        message[member] = content;
        self.send("kitchen", kind, &message).await;
    }
}

async fn start() -> Option<(ThingsStack, Server, tempfile::TempDir)> {
    let (things_stack, dir) = (ThingsStack::start().await?, tempfile::tempdir().unwrap());
    things_stack.settings(dir.path());
    let server = Server::start(dir.path()).await;
    Some((things_stack, server, dir))
}

// The stand-in for the API works while the test waits for the process.
#[tokio::test(flavor = "multi_thread")]
async fn a_device_of_the_things_stack_looks_like_one_of_v2() {
    let Some((mut things_stack, mut server, _dir)) = start().await else { return };
    let uplink = things_stack_uplink("kitchen", 7, "AQ==");
    things_stack.send("kitchen", "up", &uplink).await;
    assert_eq!(server.next().await, ("kitchen/events/create".to_owned(), Value::Null));
    let up = json!({
        "app_id": "meadow-app", "dev_id": "kitchen", "hardware_serial": DEV_EUI, "port": 2, "counter": 7,
        "payload_raw": "AQ==", "payload_fields": {"n": 1, "at": 2026},
        "metadata": {
            "time": "2026-11-22T16:00:07.026368273Z", "frequency": 868.3, "modulation": "LORA",
            "data_rate": "SF7BW125", "airtime": 56_576_000, "coding_rate": "4/5",
            "gateways": [{
                "gtw_id": "gtw1", "timestamp": 2_463_457_000_u32, "time": "2026-11-22T16:45:54Z", "channel": 2,
                "rssi": -35.0, "snr": 5.2, "rf_chain": 0,
            }],
        },
        "attributes": {"room": "2nd floor"},
    });
    assert_eq!(server.next().await, ("kitchen/up".to_owned(), up));

    // A copy is dropped, and what nobody can read ends nothing.
    things_stack.send("kitchen", "up", &uplink).await;
    things_stack.send("kitchen", "up", &json!({"end_device_ids": {"device_id": "other"}})).await;
    things_stack.send("kitchen", "location/solved", &json!({})).await;
    let mut join = things_stack_uplink("kitchen", 0, "");
    join.as_object_mut().unwrap().remove("uplink_message");
    join["join_accept"] = json!({"session_key_id": "AXA=", "received_at": "2026-11-22T17:00:00Z"});
    things_stack.send("kitchen", "join", &join).await;
    let activation = json!({
        "app_eui": "800000000000000C", "dev_eui": DEV_EUI, "dev_addr": "00BCB929",
        "metadata": {"time": "2026-11-22T17:00:00Z"},
    });
    assert_eq!(server.next().await, ("kitchen/events/activations".to_owned(), activation));
    server.wait_for_metric("airlock_bridge_uplinks_total{result=\"malformed\"} 1").await;
    server.process.stop();
}

// Conformance: Transmitting downlinks, and acknowledgements
#[tokio::test(flavor = "multi_thread")]
async fn downlinks_leave_through_the_things_stack_and_its_reports_become_events() {
    let Some((mut things_stack, mut server, _dir)) = start().await else { return };
    // It has not been heard yet, so the API says its id.
    let mut device = crate::harness::device(&server.owner.app_id, "by-hand");
    device.lorawan_device.as_mut().unwrap().dev_eui = DEV_EUI.parse().unwrap();
    server.owner.handler.set_device(device.into()).await.unwrap();
    let message = json!({"port": 7, "confirmed": true, "payload_raw": "AQI="});
    send_down(&mut server, "by-hand", message.clone()).await;
    let (path, downlink) = things_stack.next_downlink().await;
    assert_eq!(path, "devices/kitchen/down/replace");
    let id = downlink["correlation_ids"][0].clone();
    let expected = json!({
        "f_port": 7, "frm_payload": "AQI=", "confirmed": true, "priority": "NORMAL", "correlation_ids": [id],
        "confirmed_retry": {"max_attempts": 8},
    });
    assert_eq!(downlink, expected);
    assert_eq!(next_downlink_event(&mut server).await, ("scheduled".to_owned(), json!({"message": message})));

    let report = json!({"f_cnt": 3, "correlation_ids": ["as:downlink:1", id], "confirmed": true});
    things_stack.report("down/queued", "downlink_queued", report.clone()).await;
    things_stack.report("down/sent", "downlink_sent", report.clone()).await;
    let (event, sent) = next_downlink_event(&mut server).await;
    assert_eq!((event.as_str(), &sent["config"]), ("sent", &json!({"counter": 3})));
    // It is sent again there.
    let again = json!({"correlation_ids": [id], "confirmed_retry": {"attempt": 1, "max_attempts": 8}});
    things_stack.report("down/nack", "downlink_nack", again).await;
    things_stack.report("down/ack", "downlink_ack", report).await;
    assert_eq!(next_downlink_event(&mut server).await, ("acks".to_owned(), json!({"message": message})));

    let message = json!({"port": 8, "payload_raw": "Ag=="});
    send_down(&mut server, "by-hand", json!({"port": 8, "payload_raw": "Ag==", "schedule": "last"})).await;
    let (path, downlink) = things_stack.next_downlink().await;
    assert_eq!((path.as_str(), &downlink["f_port"]), ("devices/kitchen/down/push", &json!(8)));
    assert_eq!(next_downlink_event(&mut server).await.0, "scheduled");
    let failed = json!({
        "downlink": {"correlation_ids": downlink["correlation_ids"]},
        "error": {"message_format": "payload of {length} bytes", "attributes": {"length": "300"}},
    });
    things_stack.report("down/failed", "downlink_failed", failed).await;
    let error = json!({"error": "payload of 300 bytes", "message": message});
    assert_eq!(next_downlink_event(&mut server).await, ("errors".to_owned(), error));

    // A device that the application there does not have.
    server.owner.add_device("elsewhere").await;
    send_down(&mut server, "elsewhere", json!({"port": 1, "payload_raw": "AQ=="})).await;
    assert_eq!(next_downlink_event(&mut server).await.0, "scheduled");
    let (event, message) = next_downlink_event(&mut server).await;
    assert_eq!(event, "errors");
    assert!(message["error"].as_str().unwrap().contains("has no device with DevEUI"), "{message}");
    server.process.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn uplinks_that_a_killed_server_missed_are_caught_up_on() {
    let Some((mut things_stack, mut server, dir)) = start().await else { return };
    things_stack.send("kitchen", "up", &things_stack_uplink("kitchen", 1, "AQ==")).await;
    while server.next().await.0 != "kitchen/up" {}
    // Where it is up to is written every second.
    let positions = dir.path().join("bridge");
    let written = async {
        while !is_written(&positions, "16:00:01") {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(MESSAGE_TIMEOUT, written).await.expect("the position is written");
    server.process.kill();
    for counter in 2..20 {
        things_stack.api.store(things_stack_uplink("kitchen", counter, "AQ=="));
    }
    // The devices are known, so the API is needed for the missed uplinks only.
    server.process = ServerProcess::start(dir.path());
    server.listener = server.owner.listen_at(server.process.place("MQTT")).await;
    things_stack.send("kitchen", "up", &things_stack_uplink("kitchen", 20, "AQ==")).await;
    // Those before the listener was there are not among them.
    let mut last = 0;
    while last < 20 {
        let (topic, up) = server.next().await;
        if topic == "kitchen/up" {
            let counter = up["counter"].as_u64().unwrap();
            assert!(counter > last, "{counter} came after {last}");
            last = counter;
        }
    }
    server.wait_for_metric("airlock_bridge_uplinks_total{result=\"forwarded\"} 19").await;
    server.process.stop();
}

fn is_written(directory: &Path, time: &str) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path().join("positions.json"))
        .any(|file| std::fs::read_to_string(file).is_ok_and(|positions| positions.contains(time)))
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let key = "things_stack.key = 'NNSXS.KEY'\n";
    let applications = "[[bridge.applications]]\napplication = 'app1@ttn'\napp_id = 'my-app'\n";
    for (text, reason) in [
        (format!("[[bridge]]\n{key}{applications}"), "setting `[[bridge]] things_stack.api.url` not valid: is empty"),
        (format!("[[bridge]]\n{key}things_stack.api.url = 'eu1'\n{applications}"), "`[[bridge]] things_stack.api.url`"),
        (format!("[[bridge]]\nthings_stack.api.url = 'http://localhost'\n{applications}"), "key_file"),
        (format!("[[bridge]]\n{key}things_stack.api.url = 'http://localhost'\n"), "is empty"),
        (
            format!("[[bridge]]\n{key}things_stack.api.url = 'http://localhost'\n{applications}{applications}"),
            "there twice",
        ),
        (
            format!(
                "[[bridge]]\n{key}things_stack.api.url = 'http://localhost'\n\
                 things_stack.applications = [{{ id = 'app2@ttn' }}]\n{applications}"
            ),
            "app2@ttn",
        ),
        (
            format!(
                "[[bridge]]\n{key}things_stack.api.url = 'http://localhost'\n\
                 things_stack.webhook.listen = 'localhost'\n{applications}"
            ),
            "things_stack.webhook.listen",
        ),
        (
            format!("[[bridge]]\n{key}things_stack.api.url = 'http://localhost'\n{applications}").repeat(2),
            "read the same events",
        ),
        (format!("[[bridge]]\n{applications}"), "names no network"),
        (format!("[[bridge]]\n{key}chirpstack.mqtt.url = 'mqtt://localhost'\n{applications}"), "names two networks"),
    ] {
        std::fs::write(dir.path().join("airlock.toml"), &text).unwrap();
        let error = complaint(&run(&mut serve(dir.path()), ""));
        assert!(error.contains(reason) && !error.contains(" --"), "{text}\n{error}");
    }
}
