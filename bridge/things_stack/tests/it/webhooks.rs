//! Messages that The Things Stack sends as a webhook.

use std::net::SocketAddr;

use reqwest::{Client, Response};
use serde_json::{Value, json};
use testing::{MqttClient, THINGS_STACK_KEY, things_stack_uplink};
use things_stack::ThingsStackApplication;

use crate::harness::{APPLICATION_ID, Network, next_up, topic};

const SCRIPT: &str = "function decodeUplink(input) { return {data: {n: input.bytes[0]}} }";

/// A bridge with a receiver on a free port; `set` may change the settings.
async fn start(
    set: impl FnOnce(&mut Network),
) -> Option<(Network, things_stack::ThingsStackBridge, MqttClient, SocketAddr)> {
    let mut network = Network::start().await?;
    network.default_script(SCRIPT, "");
    network.device("dev1");
    network.settings.webhook.listen = "127.0.0.1:0".to_owned();
    set(&mut network);
    let bridge = network.bridge().await;
    let application = network.application().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = things_stack::webhook_router(&[bridge.webhook().unwrap().clone()]);
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    Some((network, bridge, application, address))
}

async fn post(address: SocketAddr, headers: &[(&str, &str)], body: impl Into<String>) -> Response {
    let mut request = Client::new().post(format!("http://{address}/any/path"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.into()).send().await.unwrap()
}

fn uplink(counter: u32) -> String {
    things_stack_uplink("dev1", counter, "AQ==").to_string()
}

#[tokio::test]
async fn a_message_is_published_before_it_is_answered() {
    let Some((_network, _bridge, mut application, address)) = start(|_| ()).await else { return };
    for (counter, headers) in [
        (1, [("x-downlink-apikey", THINGS_STACK_KEY)]),
        (2, [("authorization", &*format!("Bearer {THINGS_STACK_KEY}"))]),
    ] {
        assert_eq!(post(address, &headers, uplink(counter)).await.status(), 200);
        let message = application.next().await;
        assert_eq!(message.topic, topic("dev1", "up"));
        let message: Value = message.json();
        assert_eq!(message["uplink_message"]["f_cnt"], counter);
        assert_eq!(message["uplink_message"]["decoded_payload"], json!({"n": 1}));
    }
    for (member, kind) in [("join_accept", "join"), ("downlink_queue_invalidated", "down/invalidated")] {
        let message = things_stack_uplink("dev1", 3, "AQ==").to_string().replace("uplink_message", member);
        assert_eq!(post(address, &[("x-downlink-apikey", THINGS_STACK_KEY)], message).await.status(), 200);
        assert_eq!(application.next().await.topic, topic("dev1", kind));
    }
}

#[tokio::test]
async fn a_request_without_the_key_is_refused_and_nothing_is_processed() {
    let Some((_network, _bridge, mut application, address)) = start(|_| ()).await else { return };
    let bearer = format!("Bearer {THINGS_STACK_KEY}");
    let refused: [&[(&str, &str)]; 6] = [
        &[],
        &[("x-downlink-apikey", "wrong")],
        &[("x-downlink-apikey", "")],
        &[("authorization", THINGS_STACK_KEY)],
        &[("authorization", "Bearer wrong"), ("x-downlink-apikey", THINGS_STACK_KEY)],
        &[("authorization", &bearer), ("authorization", "Bearer wrong")],
    ];
    for headers in refused {
        assert_eq!(post(address, headers, uplink(1)).await.status(), 401, "{headers:?}");
    }
    let headers = [("authorization", &*bearer)];
    let of_another = uplink(1).replace(r#""application_id":"sensors""#, r#""application_id":"other""#);
    let of_device = |id: &str| uplink(1).replace(r#""device_id":"dev1""#, &format!(r#""device_id":"{id}""#));
    for (status, body) in [
        (403, of_another),
        (400, of_device("")),
        (400, of_device("dev1/up")),
        (400, of_device(r"dev\u0001")),
        (400, of_device("Dev1")),
        (400, of_device(&"d".repeat(70_000))),
        (400, "not json".to_owned()),
        (400, "{}".to_owned()),
        (400, uplink(1).replace("uplink_message", "unknown_message")),
        (413, " ".repeat((1 << 20) + 1)),
    ] {
        assert_eq!(post(address, &headers, body.clone()).await.status(), status, "{}", &body[..20.min(body.len())]);
    }
    let get = Client::new().get(format!("http://{address}/")).header("authorization", &bearer).send().await.unwrap();
    assert_eq!(get.status(), 405);
    assert_eq!(post(address, &headers, uplink(2)).await.status(), 200);
    assert_eq!(next_up(&mut application).await["uplink_message"]["f_cnt"], 2);
}

#[tokio::test]
async fn a_secret_of_its_own_takes_the_place_of_the_api_key() {
    let set = |network: &mut Network| {
        let file = network.dir.path().join("webhook.key");
        std::fs::write(&file, "hush").unwrap();
        network.settings.webhook.key_file = Some(file);
    };
    let Some((_network, _bridge, mut application, address)) = start(set).await else { return };
    assert_eq!(post(address, &[("x-downlink-apikey", THINGS_STACK_KEY)], uplink(1)).await.status(), 401);
    assert_eq!(post(address, &[("authorization", "Bearer hush")], uplink(2)).await.status(), 200);
    assert_eq!(next_up(&mut application).await["uplink_message"]["f_cnt"], 2);
}

/// The status that a request gets in the end: files are read again within a second.
async fn wait_for_status(address: SocketAddr, key: &str, status: u16) {
    let answered = async { while post(address, &[("x-downlink-apikey", key)], uplink(1)).await.status() != status {} };
    testing::soon("the answer", answered).await;
}

#[tokio::test]
async fn a_key_that_was_replaced_is_not_accepted_again() {
    let set = |network: &mut Network| {
        let file = network.dir.path().join("webhook.key");
        std::fs::write(&file, "old").unwrap();
        network.settings.webhook.key_file = Some(file);
    };
    let Some((network, _bridge, _application, address)) = start(set).await else { return };
    let file = network.settings.webhook.key_file.clone().unwrap();
    wait_for_status(address, "old", 200).await;
    std::fs::write(&file, "new").unwrap();
    wait_for_status(address, "new", 200).await;
    assert_eq!(post(address, &[("x-downlink-apikey", "old")], uplink(1)).await.status(), 401);
    // Nobody can say which key it is now.
    std::fs::remove_file(&file).unwrap();
    wait_for_status(address, "new", 503).await;
    assert_eq!(post(address, &[("x-downlink-apikey", "old")], uplink(1)).await.status(), 503);
}

#[tokio::test]
async fn tenants_cannot_share_a_key_for_applications_with_the_same_id() {
    let Some(mut network) = Network::start().await else { return };
    network.settings.webhook.listen = "127.0.0.1:0".to_owned();
    let application = |tenant: &str| ThingsStackApplication { id: format!("sensors@{tenant}"), key_file: None };
    network.settings.applications = vec![application("one"), application("two")];
    let error = network.try_bridge().await.err().unwrap().to_string();
    assert!(error.contains("`sensors@one` and `sensors@two`"), "{error}");

    // Their keys may become the same later.
    let set = |network: &mut Network| {
        let other = network.dir.path().join("other.key");
        std::fs::write(&other, "other").unwrap();
        network.settings.applications = vec![application("lab"), application("two")];
        network.settings.applications[1].key_file = Some(other);
        network.settings.key_file = Some(network.dir.path().join("key"));
        network.api.accept_any_key();
    };
    let Some((network, _bridge, _application, address)) = start(set).await else { return };
    wait_for_status(address, "other", 200).await;
    std::fs::write(network.dir.path().join("key"), "other").unwrap();
    wait_for_status(address, "other", 403).await;
}

#[tokio::test]
async fn downlinks_go_through_the_webhook_and_nowhere_else() {
    let Some((network, _bridge, mut application, address)) = start(|_| ()).await else { return };
    let push =
        |base: &str| format!("{base}/api/v3/as/applications/{APPLICATION_ID}/webhooks/hook1/devices/dev1/down/push");
    let body = json!({"downlinks": [{"f_port": 1, "frm_payload": "AQ=="}]}).to_string();
    for (counter, address_of_downlinks, path) in [
        (1, push("http://127.0.0.1:1"), "devices/dev1/down/push"),
        (2, push(&network.api.url()), "webhooks/hook1/devices/dev1/down/push"),
    ] {
        let headers = [("x-downlink-apikey", THINGS_STACK_KEY), ("x-downlink-push", &*address_of_downlinks)];
        assert_eq!(post(address, &headers, uplink(counter)).await.status(), 200);
        next_up(&mut application).await;
        application.publish(&topic("dev1", "down/push"), body.clone()).await;
        let next = async {
            loop {
                if let Some(downlink) = network.api.next_downlink() {
                    return downlink;
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        assert_eq!(testing::soon("a downlink", next).await.0, path);
    }
}

#[tokio::test]
async fn a_message_that_cannot_be_published_now_is_not_confirmed() {
    let set = |network: &mut Network| network.settings.in_flight_max = 1;
    let Some((mut network, _bridge, _application, address)) = start(set).await else { return };
    network.broker.stop();
    // One of them waits for the broker, and there is room for one.
    let post = |counter| {
        let headers = [("x-downlink-apikey", THINGS_STACK_KEY)];
        tokio::spawn(async move { post(address, &headers, uplink(counter)).await.status() })
    };
    let (mut one, mut other) = (post(1), post(2));
    let (refused, waiting) = tokio::select! {
        refused = &mut one => (refused, other),
        refused = &mut other => (refused, one),
    };
    assert_eq!(refused.unwrap(), 503);
    network.broker.start_again();
    assert_eq!(testing::soon("the response", waiting).await.unwrap(), 200);
}

#[tokio::test]
async fn a_message_for_a_broker_that_is_away_is_refused_soon_and_published_once_later() {
    let Some((mut network, _bridge, _application, address)) = start(|_| ()).await else { return };
    network.broker.stop();
    assert_eq!(post(address, &[("x-downlink-apikey", THINGS_STACK_KEY)], uplink(1)).await.status(), 503);
    network.broker.start_again();
    let mut application = network.application().await;
    for counter in [1, 2] {
        // The pause before the next connection may be longer than a request waits: the sender repeats it.
        let published = async {
            while post(address, &[("x-downlink-apikey", THINGS_STACK_KEY)], uplink(counter)).await.status() != 200 {}
        };
        testing::soon("the publication", published).await;
    }
    while next_up(&mut application).await["uplink_message"]["f_cnt"] != 2 {}
}
