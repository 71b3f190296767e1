//! Downlinks, which leave through the network, and what it reports about them.

use std::time::Duration;

use serde_json::json;
use testing::{CHIRPSTACK_APPLICATION, ChirpStackApi, Proxy};

use super::harness::{ChirpStack, DEVICE, Server, device_info, next_downlink_event, send_down, start};
use crate::harness::{MESSAGE_TIMEOUT, server_process::ServerProcess};

/// The ports of the downlinks that wait in ChirpStack, and their ids.
fn queued(api: &ChirpStackApi) -> Vec<(u32, String)> {
    api.queued().into_iter().map(|(id, item)| (item.f_port, id)).collect()
}

async fn wait_for_queued(api: &ChirpStackApi, ports: &[u32]) -> Vec<String> {
    let found = async {
        loop {
            let queued = queued(api);
            if queued.iter().map(|(port, _)| *port).eq(ports.iter().copied()) {
                return queued.into_iter().map(|(_, id)| id).collect();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let found = tokio::time::timeout(MESSAGE_TIMEOUT, found).await;
    found.unwrap_or_else(|_| panic!("ChirpStack has {:?} and not {ports:?}", queued(api)))
}

// Conformance: Transmitting downlinks, and acknowledgements
#[tokio::test(flavor = "multi_thread")]
async fn downlinks_leave_through_chirpstack_and_its_reports_become_events() {
    let Some((mut chirpstack, mut server, _dir)) = start(CHIRPSTACK_APPLICATION, "register = true").await else {
        return;
    };
    chirpstack.uplink(DEVICE, "Kitchen", 1).await;
    while server.next().await.0 != "kitchen/up" {}

    let confirmed = json!({"port": 7, "confirmed": true, "payload_raw": "AQI="});
    send_down(&mut server, "kitchen", confirmed.clone()).await;
    assert_eq!(next_downlink_event(&mut server).await, ("scheduled".to_owned(), json!({"message": confirmed})));
    let [first] = wait_for_queued(&chirpstack.api, &[7]).await.try_into().unwrap();
    let (_, item) = chirpstack.api.queued().remove(0);
    assert_eq!((item.dev_eui.as_str(), item.confirmed, item.data), (DEVICE, true, vec![1, 2]));

    let txack = json!({
        "deviceInfo": device_info(DEVICE, "Kitchen"), "queueItemId": first, "fCntDown": 3, "gatewayId": "0102",
        "txInfo": {"frequency": 869_525_000, "power": 14},
    });
    chirpstack.send(DEVICE, "txack", &txack).await;
    let sent = json!({
        "message": {"app_id": "meadow-app", "dev_id": "kitchen", "port": 7, "confirmed": true, "payload_raw": "AQI="},
        "gateway_id": "eui-0102", "config": {"counter": 3, "frequency": 869_525_000, "power": 14},
    });
    assert_eq!(next_downlink_event(&mut server).await, ("sent".to_owned(), sent));
    let ack = json!({"deviceInfo": device_info(DEVICE, "Kitchen"), "queueItemId": first, "acknowledged": true});
    chirpstack.send(DEVICE, "ack", &ack).await;
    assert_eq!(next_downlink_event(&mut server).await, ("acks".to_owned(), json!({"message": confirmed})));

    // `replace` empties ChirpStack's queue, `last` adds to it.
    send_down(&mut server, "kitchen", json!({"port": 8, "payload_raw": "Ag=="})).await;
    wait_for_queued(&chirpstack.api, &[8]).await;
    send_down(&mut server, "kitchen", json!({"port": 9, "payload_raw": "Aw==", "schedule": "last"})).await;
    let ids = wait_for_queued(&chirpstack.api, &[8, 9]).await;
    let expired = json!({
        "deviceInfo": device_info(DEVICE, "Kitchen"), "level": "ERROR", "code": "EXPIRED",
        "description": "it has expired", "context": {"queue_item_id": ids[1]},
    });
    chirpstack.send(DEVICE, "log", &expired).await;
    let failed = loop {
        let (event, message) = next_downlink_event(&mut server).await;
        if event != "scheduled" {
            break (event, message);
        }
    };
    let message = json!({"port": 9, "payload_raw": "Aw=="});
    assert_eq!(failed, ("errors".to_owned(), json!({"error": "it has expired", "message": message})));

    // A device that ChirpStack does not have.
    server.owner.add_device("elsewhere").await;
    send_down(&mut server, "elsewhere", json!({"port": 1, "payload_raw": "AQ=="})).await;
    assert_eq!(next_downlink_event(&mut server).await.0, "scheduled");
    let (event, message) = next_downlink_event(&mut server).await;
    assert_eq!((event.as_str(), &message["message"]["port"]), ("errors", &json!(1)));
    server.process.stop();
}

/// Whoever may register devices here chooses their EUIs, and the bridge's API key reaches all devices.
#[tokio::test(flavor = "multi_thread")]
async fn no_downlink_reaches_a_device_of_another_application() {
    let Some((mut chirpstack, mut server, _dir)) = start(CHIRPSTACK_APPLICATION, "register = true").await else {
        return;
    };
    chirpstack.uplink(DEVICE, "Kitchen", 1).await;
    while server.next().await.0 != "kitchen/up" {}
    chirpstack.api.move_device(DEVICE, "52f14cd4-c6f1-4fbd-8f87-4025e1d49242");
    send_down(&mut server, "kitchen", json!({"port": 1, "payload_raw": "AQ=="})).await;
    assert_eq!(next_downlink_event(&mut server).await.0, "scheduled");
    let (event, message) = next_downlink_event(&mut server).await;
    assert_eq!((event.as_str(), queued(&chirpstack.api)), ("errors", vec![]));
    assert!(message["error"].as_str().unwrap().contains("another application of ChirpStack"), "{message}");
    server.process.stop();
}

// Conformance: Transmitting downlinks, and acknowledgements
#[tokio::test(flavor = "multi_thread")]
async fn a_downlink_waits_for_chirpstack_also_over_a_kill() {
    let Some((mut chirpstack, dir)) = ChirpStack::start().await.zip(tempfile::tempdir().ok()) else { return };
    let proxy = Proxy::start(Some(chirpstack.api.address())).await;
    chirpstack.api_url = format!("http://{}", proxy.address);
    chirpstack.settings(dir.path(), CHIRPSTACK_APPLICATION, "register = true");
    let mut server = Server::start(dir.path()).await;
    chirpstack.uplink(DEVICE, "Kitchen", 1).await;
    while server.next().await.0 != "kitchen/up" {}
    proxy.redirect(None).await;
    for port in [1, 2] {
        send_down(&mut server, "kitchen", json!({"port": port, "payload_raw": "AQ==", "schedule": "last"})).await;
        assert_eq!(next_downlink_event(&mut server).await.0, "scheduled");
    }
    assert_eq!(queued(&chirpstack.api), []);
    server.process.kill();
    proxy.redirect(Some(chirpstack.api.address())).await;
    let _process = ServerProcess::start(dir.path());
    wait_for_queued(&chirpstack.api, &[1, 2]).await;
}
