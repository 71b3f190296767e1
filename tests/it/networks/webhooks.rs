//! The Things Stack sends its messages as webhooks.

use std::{fmt::Write as _, path::Path};

use reqwest::Client;
use serde_json::{Value, json};
use testing::{Proxy, THINGS_STACK_APPLICATION, THINGS_STACK_KEY, ThingsStackApi, things_stack_uplink};

use super::harness::{Server, next_downlink_event, send_down};
use crate::harness::MESSAGE_TIMEOUT;

const OTHER_KEY: &str = "NNSXS.OTHERKEY.SECRET";
/// A secret that both networks share, and that the stand-ins' API keys cannot be.
const SHARED_SECRET: &str = "of both";

/// The API of a network with the device `kitchen`.
async fn start_api(key: &str) -> ThingsStackApi {
    let api = ThingsStackApi::start().await;
    api.set_key(key);
    api.set_device("sensors", "kitchen", json!({"ids": {"device_id": "kitchen", "dev_eui": "0004A30B001C0530"}}));
    api
}

/// An entry that brings the devices of a network at `url` to `app_id`.
fn entry(url: &str, key: &str, app_id: &str, members: &str) -> String {
    format!(
        "[[bridge]]\nthings_stack.api.url = '{url}'\nthings_stack.webhook.listen = '127.0.0.1:0'\n\
         things_stack.key = '{key}'\n{members}\n\
         [[bridge.applications]]\napplication = '{THINGS_STACK_APPLICATION}'\napp_id = '{app_id}'\nregister = true\n\n"
    )
}

async fn start(dir: &Path, entries: &str) -> Server {
    server::system::install_crypto();
    std::fs::write(dir.join("airlock.toml"), entries).unwrap();
    Server::start(dir).await
}

/// Sends a message as The Things Stack does, and returns the status of the response.
async fn post(server: &Server, key: &str, message: &Value, push: Option<String>) -> u16 {
    let mut request = Client::new().post(server.process.place("webhook")).header("x-downlink-apikey", key);
    if let Some(push) = push {
        request = request.header("x-downlink-push", push);
    }
    request.body(message.to_string()).send().await.unwrap().status().as_u16()
}

/// The counter of the next uplink.
async fn next_counter(server: &mut Server) -> u64 {
    loop {
        let (topic, message) = server.next().await;
        if topic == "kitchen/up" {
            return message["counter"].as_u64().unwrap();
        }
    }
}

fn report(member: &str, content: Value) -> Value {
    let mut message = things_stack_uplink("kitchen", 0, "");
    message.as_object_mut().unwrap().remove("uplink_message");
    message[member] = content;
    message
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_come_in_and_downlinks_leave_through_the_webhook() {
    let (dir, api) = (tempfile::tempdir().unwrap(), start_api(THINGS_STACK_KEY).await);
    let mut server = start(dir.path(), &entry(&api.url(), THINGS_STACK_KEY, "meadow-app", "")).await;
    let uplink = things_stack_uplink("kitchen", 7, "AQ==");
    for key in ["", "wrong"] {
        assert_eq!(post(&server, key, &uplink, None).await, 401);
    }
    let path = "/api/v3/as/applications/sensors/webhooks/hook-1/devices/kitchen/down/push";
    let hook = Some(format!("{}{path}", api.url()));
    assert_eq!(post(&server, THINGS_STACK_KEY, &uplink, hook.clone()).await, 200);
    assert_eq!(server.next().await, ("kitchen/events/create".to_owned(), Value::Null));
    let (topic, up) = server.next().await;
    assert_eq!((topic.as_str(), &up["payload_fields"]["n"]), ("kitchen/up", &json!(1)));
    let join = report("join_accept", json!({"session_key_id": "AXA="}));
    assert_eq!(post(&server, THINGS_STACK_KEY, &join, None).await, 200);
    assert_eq!(server.next().await.0, "kitchen/events/activations");

    send_down(&mut server, "kitchen", json!({"port": 7, "payload_raw": "AQI="})).await;
    assert_eq!(next_downlink_event(&mut server).await.0, "scheduled");
    let (path, body) = next_downlink(&api).await;
    assert_eq!(path, "webhooks/hook-1/devices/kitchen/down/replace");
    let sent = report("downlink_sent", json!({"correlation_ids": body["downlinks"][0]["correlation_ids"]}));
    assert_eq!(post(&server, THINGS_STACK_KEY, &sent, None).await, 200);
    assert_eq!(next_downlink_event(&mut server).await.0, "sent");

    // The webhook was deleted: the API takes downlinks without it.
    api.refuse_downlinks([404, 404]);
    send_down(&mut server, "kitchen", json!({"port": 8, "payload_raw": "AQI="})).await;
    assert_eq!(next_downlink_event(&mut server).await.0, "scheduled");
    assert_eq!(next_downlink(&api).await.0, "devices/kitchen/down/replace");

    // The device was deleted, and the key is for the webhook only: the downlink does not wait for another key.
    assert_eq!(post(&server, THINGS_STACK_KEY, &things_stack_uplink("kitchen", 8, "AQ=="), hook).await, 200);
    assert_eq!(server.next().await.0, "kitchen/up");
    api.refuse_downlinks([404, 404, 403]);
    send_down(&mut server, "kitchen", json!({"port": 9, "payload_raw": "AQI="})).await;
    assert_eq!(next_downlink_event(&mut server).await.0, "scheduled");
    assert_eq!(next_downlink_event(&mut server).await.0, "errors");
    server.process.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_downlink_for_a_deleted_device_ends_although_the_key_may_not_list_devices() {
    let (dir, api) = (tempfile::tempdir().unwrap(), start_api(THINGS_STACK_KEY).await);
    let mut server = start(dir.path(), &entry(&api.url(), THINGS_STACK_KEY, "meadow-app", "")).await;
    assert_eq!(post(&server, THINGS_STACK_KEY, &things_stack_uplink("kitchen", 7, "AQ=="), None).await, 200);
    while server.next().await.0 != "kitchen/up" {}
    api.refuse_device_lists();
    api.refuse_downlinks([404]);
    send_down(&mut server, "kitchen", json!({"port": 7, "payload_raw": "AQI="})).await;
    assert_eq!(next_downlink_event(&mut server).await.0, "scheduled");
    assert_eq!(next_downlink_event(&mut server).await.0, "errors");
    server.process.stop();
}

async fn next_downlink(api: &ThingsStackApi) -> (String, Value) {
    let found = async {
        loop {
            if let Some(found) = api.next_downlink() {
                return found;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(MESSAGE_TIMEOUT, found).await.expect("a downlink reaches the API")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_cannot_be_handed_over_is_repeated_by_its_network() {
    let (dir, api) = (tempfile::tempdir().unwrap(), start_api(THINGS_STACK_KEY).await);
    let proxy = Proxy::start(None).await;
    let url = format!("http://{}", proxy.address);
    let members = "things_stack.api_wait_ms_max = 100";
    let mut server = start(dir.path(), &entry(&url, THINGS_STACK_KEY, "meadow-app", members)).await;
    // Nobody can say which attributes the device has.
    let uplink = things_stack_uplink("kitchen", 1, "AQ==");
    assert_eq!(post(&server, THINGS_STACK_KEY, &uplink, None).await, 503);
    proxy.redirect(Some(api.url().trim_start_matches("http://").parse().unwrap())).await;
    while post(&server, THINGS_STACK_KEY, &uplink, None).await != 200 {}
    assert_eq!(post(&server, THINGS_STACK_KEY, &things_stack_uplink("kitchen", 2, "AQ=="), None).await, 200);
    for counter in [1, 2] {
        assert_eq!(next_counter(&mut server).await, counter);
    }
    server.process.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn networks_that_share_an_address_are_told_apart_by_their_keys() {
    let (one, other) = (start_api(THINGS_STACK_KEY).await, start_api(OTHER_KEY).await);
    let dir = tempfile::tempdir().unwrap();
    let mut entries = entry(&one.url(), THINGS_STACK_KEY, "meadow-app", "");
    // Its messages are dropped, because the application is not registered.
    write!(entries, "{}", entry(&other.url(), OTHER_KEY, "nowhere", "")).unwrap();
    let mut server = start(dir.path(), &entries).await;
    assert_eq!(post(&server, OTHER_KEY, &things_stack_uplink("kitchen", 1, "AQ=="), None).await, 200);
    assert_eq!(post(&server, THINGS_STACK_KEY, &things_stack_uplink("kitchen", 2, "AQ=="), None).await, 200);
    assert_eq!(next_counter(&mut server).await, 2);
    server.wait_for_metric("airlock_bridge_dropped_total{reason=\"refused\"} 1").await;
    server.process.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_two_networks_is_that_of_neither() {
    let (dir, api) = (tempfile::tempdir().unwrap(), start_api(THINGS_STACK_KEY).await);
    let secret = dir.path().join("webhook.key");
    std::fs::write(&secret, SHARED_SECRET).unwrap();
    let members = format!("things_stack.webhook.key_file = '{}'\n", secret.display());
    let other_url = api.url().replace("127.0.0.1", "localhost");
    let entries = entry(&api.url(), THINGS_STACK_KEY, "meadow-app", &members)
        + &entry(&other_url, THINGS_STACK_KEY, "elsewhere", &members);
    let server = start(dir.path(), &entries).await;
    assert_eq!(post(&server, SHARED_SECRET, &things_stack_uplink("kitchen", 1, "AQ=="), None).await, 403);
    server.process.stop();
}
