//! Stored messages are sent again while receivers are dead, devices are gone, and the server is killed.

use std::{
    collections::BTreeSet,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use testing::Mosquitto;

use super::{records, send, subscriber};
use crate::{
    delivery::{
        external_broker::until_ready,
        webhooks::{call, receiver::Receiver},
    },
    harness::{
        Network, PASSWORD, airlock, next,
        server_process::{ServerProcess, serve},
    },
};

/// Number of uplinks that are sent again while the server is killed, and number after which it is.
const UPLINKS: u8 = 60;
const KILLED_AFTER: usize = 10;

// Conformance: Stored messages are sent again, marked, with their own times and newest fields
#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_gets_no_more_and_loses_nothing_live() {
    let network = Network::with(|settings| {
        settings.output.delivery.allow_private_addresses = true;
        settings.output.delivery.queue_messages_max = 10;
    })
    .await;
    let owner = network.owner("full").await;
    owner.add_device("dev-1").await;
    let mut receiver = Receiver::start().await;
    receiver.stop().await;
    let webhook = json!({"url": receiver.url(), "events": ["up"]});
    assert_eq!(call(&network.handler_http(), &owner, "PUT", "/dead", webhook).await.0, 200);
    for byte in 0..10 {
        owner.simulate("dev-1", &[byte], 1).await.unwrap();
    }
    let mut listener = subscriber(&network, &owner, &["devices/+/up"]).await;
    let alone = json!({"kind": "up", "to": {"webhook": "dead"}});
    let seen = {
        // It waits for room, as long as it has one.
        let first = super::request(&network, &owner, "replay", &json!({"kind": "up"})).send().await.unwrap();
        let second = super::post(&network, &owner, "replay", json!({"kind": "up"})).await;
        assert_eq!(second.0, 409, "one at a time: {second:?}");
        super::sum(&super::reports(&first.text().await.unwrap()))
    };
    let alone = super::post(&network, &owner, "replay", alone).await;
    // Others get them, and who does not is named.
    assert_eq!((&seen["examined"], &seen["refused"], &seen["sent"]), (&json!(10), &json!(10), &Value::Null));
    assert_eq!(seen["receivers"]["webhook dead"]["reason"], "its queue has room for live messages only", "{seen}");
    for _ in 0..10 {
        assert_eq!(next(&mut listener).await.1["is_retry"], true);
    }
    // If nobody gets them, it ends and says whose queue is full.
    let (status, reports) = alone;
    assert_eq!((status, reports.len()), (200, 1), "{reports:?}");
    assert!(reports[0]["error"].as_str().unwrap().contains("webhook dead"), "{reports:?}");
    receiver.start_again().await;
    for byte in 0..10 {
        let message = receiver.next().await.json();
        let expected = (json!([byte]), Value::Null);
        assert_eq!((json!([bytes(&message)[0]]), message["is_retry"].clone()), expected, "all that were live");
    }
    // Now there is room.
    assert_eq!(send(&network, &owner, json!({"kind": "up", "to": {"webhook": "dead"}})).await["sent"], 10);
    for byte in 0..10 {
        let message = receiver.next().await.json();
        assert_eq!((bytes(&message)[0], &message["is_retry"]), (byte, &json!(true)));
    }
    network.stack.stop().await;
}

// Conformance: Stored messages are sent again, marked, with their own times and newest fields
#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_deleted_device_are_not_sent() {
    let network = Network::start().await;
    let owner = network.owner("left").await;
    for dev_id in ["here", "gone"] {
        owner.add_device(dev_id).await;
        owner.simulate(dev_id, &[7], 1).await.unwrap();
    }
    owner.handler.delete_device(&owner.app_id, &"gone".parse().unwrap()).await.unwrap();
    let left = records(&network, &owner, "dev_id=gone").await.len();
    let mut listener = subscriber(&network, &owner, &["devices/+/up", "devices/+/events/#"]).await;
    let seen = send(&network, &owner, json!({})).await;
    assert_eq!(seen["examined"], json!(2 + left));
    assert_eq!(seen["sent"], 2, "{seen}");
    assert_eq!(seen["device_gone"].as_u64().unwrap_or_default(), left as u64, "{seen}");
    for topic in ["here/events/create", "here/up"] {
        assert_eq!(crate::harness::next_of_all(&mut listener).await.0, topic);
    }
    network.stack.stop().await;
}

// Conformance: Stored messages are sent again, marked, with their own times and newest fields
#[tokio::test(flavor = "multi_thread")]
async fn the_command_goes_on_after_the_server_was_killed() {
    server::system::install_crypto();
    let dir = tempfile::tempdir().unwrap();
    let mut server = ServerProcess::spawn(start(dir.path()).stderr(Stdio::null()));
    let owner = server.owner(dir.path(), "killed").await;
    owner.add_device("dev-1").await;
    for byte in 0..UPLINKS {
        owner.simulate("dev-1", &[byte], 1).await.unwrap();
    }
    let mut receiver = Receiver::start().await;
    let base = server.announcement(dir.path()).await.api_address;
    assert_eq!(call(&base, &owner, "PUT", "/my-hook", json!({"url": receiver.url()})).await.0, 200);
    server.type_command(dir.path(), &["user", "login", "killed", "--password-stdin"], PASSWORD);
    let mut replay = airlock(dir.path());
    replay.args(["--auth-server", server.place("account"), "--discovery-address", server.place("discovery")]);
    replay.args(["history", "replay", "--app-id", owner.app_id.as_str(), "--kind", "up", "--rate", "20"]);
    replay.args(["--to", "webhook", "my-hook", "--output", "json"]);
    let replay = replay.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut received = Vec::new();
    while received.len() < KILLED_AFTER {
        received.push(bytes(&receiver.next().await.json())[0]);
    }
    server.kill();
    let server = ServerProcess::spawn(at_the_same_places(&mut start(dir.path()), &server).stderr(Stdio::null()));
    while received.iter().collect::<BTreeSet<_>>().len() < usize::from(UPLINKS) {
        let message = receiver.next().await.json();
        assert_eq!(message["is_retry"], true);
        received.push(bytes(&message)[0]);
    }
    let replay = tokio::task::spawn_blocking(|| replay.wait_with_output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&replay.stderr);
    assert!(replay.status.success() && said.contains("trying again"), "{said}");
    let sent: Value = serde_json::from_slice(&replay.stdout).unwrap();
    assert_eq!((&sent["examined"], &sent["sent"]), (&json!(UPLINKS), &json!(UPLINKS)), "{sent}");
    server.stop();
}

fn start(dir: &Path) -> Command {
    let mut command = serve(dir);
    command.env("AIRLOCK_OUTPUT__DELIVERY__ALLOW_PRIVATE_ADDRESSES", "true");
    command
}

/// Has a server listen where another one did.
fn at_the_same_places<'a>(command: &'a mut Command, server: &ServerProcess) -> &'a mut Command {
    for (name, place) in [
        ("ACCOUNT", server.http("account")),
        ("DISCOVERY", server.place("discovery")),
        ("DISCOVERY_HTTP", server.http("discovery")),
        ("HANDLER", server.place("handler")),
        ("HANDLER_HTTP", server.http("handler")),
    ] {
        let (_, port) = place.rsplit_once(':').unwrap();
        command.env(format!("AIRLOCK_LISTEN__{name}"), format!("127.0.0.1:{port}"));
    }
    command
}

/// The payload of a message.
fn bytes(message: &Value) -> Vec<u8> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.decode(message["payload_raw"].as_str().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_away_takes_nothing_and_others_get_each_message_once() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let network = Network::with(|settings| {
        settings.external_broker.mqtt.url = mosquitto.url();
        settings.output.delivery.allow_private_addresses = true;
    })
    .await;
    let overview = network.stack.overview();
    until_ready(overview.rsplit(' ').next().unwrap()).await;
    let owner = network.owner("away").await;
    owner.add_device("dev-1").await;
    for byte in 0..10 {
        owner.simulate("dev-1", &[byte], 1).await.unwrap();
    }
    let mut receiver = Receiver::start().await;
    let webhook = json!({"url": receiver.url(), "events": ["up"]});
    assert_eq!(call(&network.handler_http(), &owner, "PUT", "/my-hook", webhook).await.0, 200);
    drop(mosquitto);
    let seen = send(&network, &owner, json!({"kind": "up"})).await;
    assert_eq!(
        (&seen["examined"], &seen["refused"], &seen["receivers"]["broker"]["count"]),
        (&json!(10), &json!(10), &json!(10))
    );
    for byte in 0..10 {
        assert_eq!(bytes(&receiver.next().await.json())[0], byte);
    }
    network.stack.stop().await;
}
