//! Reports of networks, as applications of v2 see them.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use api::history::Query;
use serde_json::{Value, json};
use testing::{CHIRPSTACK_APPLICATION, CHIRPSTACK_APPLICATION_NAME};

use super::harness::{DEVICE, device_info, start, uplink};
use crate::{console::visitor::Visitor, harness::server_process::get};

// The stand-in for the API works while the test waits for the process.
#[tokio::test(flavor = "multi_thread")]
async fn a_device_of_chirpstack_looks_like_one_of_v2() {
    let Some((mut chirpstack, mut server, _dir)) = start(CHIRPSTACK_APPLICATION_NAME, "register = true").await else {
        return;
    };
    chirpstack.uplink(DEVICE, "Kitchen (2nd floor)", 7).await;
    assert_eq!(server.next().await, ("kitchen-2nd-floor/events/create".to_owned(), Value::Null));
    let up = json!({
        "app_id": "meadow-app", "dev_id": "kitchen-2nd-floor", "hardware_serial": "A300000000000001", "port": 2,
        "counter": 7, "confirmed": true, "payload_raw": "AQ==",
        "payload_fields": {"n": 1, "offset": "5", "at": 2026},
        "metadata": {
            "time": "2026-11-22T16:45:55.231022372Z", "frequency": 868.3, "modulation": "LORA",
            "data_rate": "SF7BW125", "coding_rate": "4/5",
            "gateways": [{
                "gtw_id": "eui-0102030405060708", "time": "", "channel": 0, "rssi": -60.0, "snr": 7.5, "rf_chain": 0,
            }],
        },
        "attributes": {"room": "kitchen"},
    });
    assert_eq!(server.next().await, ("kitchen-2nd-floor/up".to_owned(), up.clone()));
    let query = Query { app_id: "meadow-app".to_owned(), kind: "up".to_owned(), ..Query::default() };
    let record = loop {
        // An uplink is published before it is on disk.
        let page = server.owner.handler.list_records(query.clone()).await.unwrap();
        if let Some(record) = page.records.into_iter().next() {
            break record;
        }
    };
    assert_eq!(serde_json::from_str::<Value>(&record.metadata).unwrap(), up["metadata"], "history has the same");

    // It stays the same device when it gets another name, and a copy of its event is dropped.
    chirpstack.uplink(DEVICE, "Kitchen (2nd floor)", 7).await;
    let join = json!({
        "deduplicationId": "j1", "time": "2026-11-22T17:00:00+00:00", "deviceInfo": device_info(DEVICE, "Cellar"),
        "devAddr": "01020304",
    });
    chirpstack.send(DEVICE, "join", &join).await;
    let activation = json!({
        "app_eui": "", "dev_eui": "A300000000000001", "dev_addr": "01020304",
        "metadata": {"time": "2026-11-22T17:00:00Z"},
    });
    assert_eq!(server.next().await, ("kitchen-2nd-floor/events/activations".to_owned(), activation));

    // A device with the same name gets an id from its EUI.
    let other = "a300000000000002";
    chirpstack.api.set_device(other, "profile", &[]);
    chirpstack.uplink(other, "Kitchen (2nd floor)", 1).await;
    assert_eq!(server.next().await.0, format!("{other}/events/create"));
    let (topic, up) = server.next().await;
    assert_eq!((topic, &up["payload_fields"]), (format!("{other}/up"), &json!({"n": 1, "at": 2026})));
    let name = format!("network=\"ChirpStack at {}\"", chirpstack.broker.address());
    for (result, count) in [("taken", 3), ("duplicate", 1), ("malformed", 0)] {
        let metric = format!("airlock_bridge_network_events_total{{{name},result=\"{result}\"}} {count}");
        server.wait_for_metric(&metric).await;
    }
    for metric in ["lag_seconds", "in_progress", "connected"] {
        server.wait_for_metric(&format!("airlock_bridge_network_{metric}{{{name}}}")).await;
    }
    server.process.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn mosquitto_sub_receives_a_device_of_chirpstack() {
    let Some((mut chirpstack, server, _dir)) = start(CHIRPSTACK_APPLICATION, "register = true").await else { return };
    let (host, port) = server.process.place("MQTT").rsplit_once(':').unwrap();
    let mut command = Command::new("mosquitto_sub");
    command.args(["-h", host, "-p", port, "-t", "+/devices/+/up", "-C", "1", "-W", "60"]);
    command.args(["-u", server.owner.app_id.as_str(), "-P", server.owner.key.expose()]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    for counter in 1.. {
        chirpstack.uplink(DEVICE, "Kitchen", counter).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        if child.try_wait().unwrap().is_some() {
            break;
        }
    }
    let up: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!((&up["dev_id"], &up["payload_fields"]["n"]), (&json!("kitchen"), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_moves_to_the_application_is_heard_at_once() {
    let start = start(CHIRPSTACK_APPLICATION, "register = true").await;
    let Some((mut chirpstack, mut server, _dir)) = start else { return };
    chirpstack.api.move_device(DEVICE, &CHIRPSTACK_APPLICATION.replace('1', "2"));
    chirpstack.uplink(DEVICE, "Kitchen", 1).await;
    server.wait_for_metric("airlock_bridge_dropped_total{reason=\"foreign\"} 1").await;
    chirpstack.api.move_device(DEVICE, CHIRPSTACK_APPLICATION);
    chirpstack.uplink(DEVICE, "Kitchen", 2).await;
    assert_eq!(server.next().await.0, "kitchen/events/create");
    assert_eq!(server.next().await.1["counter"], 2);
    // Its record does not have the counter, because no uplink of a bridge writes there.
    let visitor = Visitor::logged_in(server.process.place("account"), "meadow").await;
    visitor.get("/console").await;
    let counters = "<dd>2 up; its network counts downlinks</dd>";
    visitor.until("/console/applications/meadow-app/devices/kitchen", counters).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_lead_nowhere_are_dropped_and_counted() {
    let Some((mut chirpstack, mut server, _dir)) = start(CHIRPSTACK_APPLICATION, "").await else { return };
    chirpstack.uplink(DEVICE, "Kitchen", 1).await;
    server.wait_for_metric("airlock_bridge_dropped_total{reason=\"refused\"} 1").await;
    let metrics = get(server.process.place("metrics"));
    assert!(!metrics.contains("result=\"forwarded\""), "{metrics}");
    let foreign = format!("application/{}/device/{DEVICE}/event/up", CHIRPSTACK_APPLICATION.replace('1', "2"));
    chirpstack.client.publish(&foreign, uplink(DEVICE, "Kitchen", 2).to_string()).await;
    server.wait_for_metric("airlock_bridge_events_total{result=\"ignored\"} 1").await;
    chirpstack.send(DEVICE, "up", &json!({"deviceInfo": {"devEui": "a300000000000009"}})).await;
    server.wait_for_metric("airlock_bridge_uplinks_total{result=\"malformed\"} 1").await;
    chirpstack.send(DEVICE, "join", &json!({"deviceInfo": {"devEui": DEVICE}})).await;
    server.wait_for_metric("airlock_bridge_events_total{result=\"malformed\"} 1").await;
    // What is registered by hand under the same id or EUI is found.
    server.owner.add_device("kitchen").await;
    chirpstack.uplink(DEVICE, "Kitchen", 3).await;
    server.wait_for_metric("airlock_bridge_dropped_total{reason=\"refused\"} 2").await;
    let mut device = crate::harness::device(&server.owner.app_id, "by-hand");
    device.lorawan_device.as_mut().unwrap().dev_eui = DEVICE.parse().unwrap();
    server.owner.handler.set_device(device.into()).await.unwrap();
    chirpstack.uplink(DEVICE, "Kitchen", 4).await;
    let (topic, up) = server.next().await;
    assert_eq!((topic.as_str(), &up["counter"]), ("by-hand/up", &json!(4)));
}
