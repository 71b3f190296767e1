//! RabbitMQ with its MQTT plugin, which asks Airlock about every client.

use std::net::TcpListener;

use client::data::{DataClient, Message, Payload, Schedule, Topics};
use testing::RabbitMqtt;
use tokio::time::timeout;
use types::Credential;

use super::until_ready;
use crate::harness::{MESSAGE_TIMEOUT, Network};

#[tokio::test(flavor = "multi_thread")]
async fn rabbitmq_lets_applications_do_what_their_keys_allow() {
    // The broker has to know the address before Airlock listens there.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let Some(rabbitmq) = RabbitMqtt::start(&format!("http://127.0.0.1:{port}/rabbitmq")) else { return };
    let password = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(password.path(), "guest").unwrap();
    let network = Network::with(|settings| {
        settings.external_broker.mqtt.url = format!("mqtt://{}", rabbitmq.address());
        settings.external_broker.mqtt.username = Some("guest".to_owned());
        settings.external_broker.mqtt.password_file = Some(password.path().to_owned());
        settings.external_broker.access_listen = format!("127.0.0.1:{port}");
    })
    .await;
    let (owner, other) = (network.owner("rabbit").await, network.owner("stranger").await);
    owner.add_device("dev-1").await;
    let overview = network.stack.overview();
    until_ready(overview.rsplit(' ').next().unwrap()).await;
    let address = rabbitmq.address().to_string();
    let key = Credential::Key(owner.key.clone());
    let client = DataClient::connect(&address, &owner.app_id, &key).await.unwrap();
    let mut messages = client.stream(Topics::uplinks()).await.unwrap();
    let mut next = async || {
        let received = timeout(MESSAGE_TIMEOUT, messages.next()).await.expect("a message arrives");
        received.unwrap().unwrap().message
    };
    owner.simulate("dev-1", &[1, 2], 3).await.unwrap();
    while !matches!(&*next().await, Message::Uplink(uplink) if uplink.port == 3) {}
    client.send(&"dev-1".parse().unwrap(), Payload::from([7]), 1, false, Schedule::Replace).await.unwrap();
    let queued = async {
        while owner.handler.list_downlinks(&owner.app_id, &"dev-1".parse().unwrap()).await.unwrap().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    timeout(MESSAGE_TIMEOUT, queued).await.expect("the downlink is queued");
    // Somebody else's key opens nothing, and nobody reads what belongs to others.
    let foreign = DataClient::connect(&address, &owner.app_id, &Credential::Key(other.key.clone())).await;
    assert!(foreign.is_err());
    let filter =
        |app: &str| mosquitto_sub(&rabbitmq, other.app_id.as_str(), other.key.expose(), &format!("{app}/devices/#"));
    assert!(filter("rabbit-app").contains("ended"), "another application's messages");
    assert!(filter("+").contains("ended"), "those of all applications");
    assert!(filter("stranger-app").contains("waited"), "its own");
    network.stack.stop().await;
}

/// Whether a client with this filter was sent away, or waited for messages.
fn mosquitto_sub(rabbitmq: &RabbitMqtt, username: &str, password: &str, filter: &str) -> &'static str {
    let (host, port) = (rabbitmq.address().ip().to_string(), rabbitmq.address().port().to_string());
    let mut command = std::process::Command::new("mosquitto_sub");
    command.args(["-h", &host, "-p", &port, "-u", username, "-P", password, "-t", filter, "-q", "1", "-W", "2", "-d"]);
    let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
    // The broker closes the connection, or grants nothing.
    let is_granted = output.lines().any(|line| line.contains("Subscribed (mid: 1): 1"));
    if is_granted { "waited" } else { "ended" }
}
