//! Events while the API of the network is away.

use std::time::Duration;

use api::handler::device::Device as DeviceOf;
use serde_json::{Value, json};
use tempfile::TempDir;
use testing::{CHIRPSTACK_APPLICATION, CHIRPSTACK_APPLICATION_NAME, Proxy};
use types::AppEui;

use super::harness::{ChirpStack, DEVICE, Server};

const JOIN_EUI: &str = "70b3d57ed0000001";

/// A server whose network's API is behind a proxy, and away.
async fn start_without_api(application: &str, members: &str) -> Option<(ChirpStack, Server, Proxy, TempDir)> {
    let (mut chirpstack, dir) = (ChirpStack::start().await?, tempfile::tempdir().unwrap());
    chirpstack.api.set_join_eui(DEVICE, JOIN_EUI);
    let proxy = Proxy::start(None).await;
    chirpstack.api_url = format!("http://{}", proxy.address);
    chirpstack.api_wait_ms_max = 500;
    chirpstack.settings(dir.path(), application, members);
    let server = Server::start(dir.path()).await;
    Some((chirpstack, server, proxy, dir))
}

/// Registers the network's device by hand.
async fn register(server: &Server, dev_id: &str) {
    let mut device = crate::harness::device(&server.owner.app_id, dev_id);
    let lorawan = device.lorawan_device.as_mut().unwrap();
    (lorawan.app_eui, lorawan.dev_eui) = (JOIN_EUI.parse().unwrap(), DEVICE.parse().unwrap());
    server.owner.handler.set_device(device.into()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_api_is_away_devices_have_no_variables_and_are_told_so() {
    let Some((mut chirpstack, mut server, proxy, _dir)) = start_without_api(CHIRPSTACK_APPLICATION, "").await else {
        return;
    };
    register(&server, "by-hand").await;
    chirpstack.uplink(DEVICE, "Kitchen", 1).await;
    let (_, up) = server.next().await;
    assert_eq!(up["payload_fields"], json!({"n": 1, "at": 2026}));
    let (topic, error) = server.next().await;
    assert_eq!(topic, "by-hand/events/up/errors");
    assert!(error["error"].as_str().unwrap().contains("variables of the device are not known"), "{error}");
    // It is asked again, and not for every message.
    proxy.redirect(Some(chirpstack.api.address())).await;
    for counter in 2.. {
        chirpstack.uplink(DEVICE, "Kitchen", counter).await;
        let (topic, message) = server.next().await;
        if topic == "by-hand/up" && message["payload_fields"]["offset"] == "5" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_api_is_away_unknown_devices_wait_and_none_is_registered() {
    for members in ["", "register = true"] {
        let start = start_without_api(CHIRPSTACK_APPLICATION, members).await;
        let Some((mut chirpstack, mut server, proxy, _dir)) = start else { return };
        for counter in 1..4 {
            chirpstack.uplink(DEVICE, "Kitchen", counter).await;
        }
        server.wait_for_metric("airlock_bridge_retried_total").await;
        // Nobody could have told that this is the same device.
        register(&server, "by-hand").await;
        proxy.redirect(Some(chirpstack.api.address())).await;
        for counter in 1..4 {
            let (topic, up) = next_but_errors(&mut server).await;
            assert_eq!((topic.as_str(), &up["counter"]), ("by-hand/up", &json!(counter)));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_waited_for_the_api_is_registered_with_its_join_eui() {
    let start = start_without_api(CHIRPSTACK_APPLICATION, "register = true").await;
    let Some((mut chirpstack, mut server, proxy, _dir)) = start else { return };
    chirpstack.uplink(DEVICE, "Kitchen", 1).await;
    server.wait_for_metric("airlock_bridge_retried_total").await;
    proxy.redirect(Some(chirpstack.api.address())).await;
    assert_eq!(server.next().await.0, "kitchen/events/create");
    let (topic, up) = server.next().await;
    assert_eq!((topic.as_str(), &up["payload_fields"]["offset"]), ("kitchen/up", &json!("5")));
    let device = server.owner.handler.get_device(&server.owner.app_id, &"kitchen".parse().unwrap()).await.unwrap();
    let Some(DeviceOf::LorawanDevice(lorawan)) = device.device else { panic!("{device:?}") };
    assert_eq!(lorawan.app_eui, JOIN_EUI.parse::<AppEui>().unwrap().as_bytes());
}

/// The next message that does not say that variables are missing.
async fn next_but_errors(server: &mut Server) -> (String, Value) {
    loop {
        let (topic, message) = server.next().await;
        if !topic.ends_with("/events/up/errors") {
            return (topic, message);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_wait_while_nobody_can_say_which_application_has_the_name() {
    let start = start_without_api(CHIRPSTACK_APPLICATION_NAME, "register = true").await;
    let Some((mut chirpstack, mut server, proxy, _dir)) = start else { return };
    for counter in 0..3 {
        chirpstack.uplink(DEVICE, "Kitchen", counter).await;
    }
    proxy.redirect(Some(chirpstack.api.address())).await;
    let mut counters = Vec::new();
    while counters.len() < 3 {
        let (topic, up) = server.next().await;
        if topic == "kitchen/up" {
            counters.push(up["counter"].as_u64().unwrap());
        }
    }
    assert_eq!(counters, [0, 1, 2]);
}
