//! RabbitMQ with its MQTT plugin, which asks Airlock about every client.

use client::data::{DataClient, Message, Payload, Schedule, Topics};
use rumqttc::{AsyncClient, Event, MqttOptions, Packet, QoS, SubscribeReasonCode};
use testing::{Proxy, RabbitMq};
use tokio::time::timeout;
use types::Credential;

use super::until_ready;
use crate::harness::{MESSAGE_TIMEOUT, Network};

// Conformance: RabbitMQ asks Airlock what its clients may do
#[tokio::test(flavor = "multi_thread")]
async fn rabbitmq_lets_applications_do_what_their_keys_allow() {
    // The broker has to know the address before Airlock listens there.
    let access = Proxy::start(None).await;
    let Some(rabbitmq) = RabbitMq::start_mqtt(&format!("http://{}/rabbitmq", access.address)) else { return };
    let password = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(password.path(), "guest").unwrap();
    let network = Network::with(|settings| {
        settings.external_broker.mqtt.url = format!("mqtt://{}", rabbitmq.address());
        settings.external_broker.mqtt.username = Some("guest".to_owned());
        settings.external_broker.mqtt.password_file = Some(password.path().to_owned());
        settings.external_broker.access_listen = "127.0.0.1:0".to_owned();
    })
    .await;
    let overview = network.stack.overview();
    let line = overview.lines().find_map(|line| line.trim().strip_prefix("access  http://")).unwrap();
    access.redirect(Some(line.trim_end_matches('/').parse().unwrap())).await;
    let (owner, other) = (network.owner("rabbit").await, network.owner("stranger").await);
    owner.add_device("dev-1").await;
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
    let (name, key) = (other.app_id.as_str(), other.key.expose());
    assert!(!is_granted(&rabbitmq, name, key, "rabbit-app/devices/#").await, "another application's messages");
    assert!(!is_granted(&rabbitmq, name, key, "+/devices/#").await, "those of all applications");
    assert!(is_granted(&rabbitmq, name, key, "stranger-app/devices/#").await, "its own");
    network.stack.stop().await;
}

/// Returns true if the broker accepts the subscription; it closes the connection, or grants nothing, if it does not.
async fn is_granted(rabbitmq: &RabbitMq, username: &str, password: &str, filter: &str) -> bool {
    let (host, port) = (rabbitmq.address().ip().to_string(), rabbitmq.address().port());
    let mut options = MqttOptions::new("reader", host, port);
    options.set_credentials(username, password);
    let (client, mut connection) = AsyncClient::new(options, 1);
    client.subscribe(filter, QoS::AtLeastOnce).await.unwrap();
    let mut is_connected = false;
    loop {
        match timeout(MESSAGE_TIMEOUT, connection.poll()).await.expect("the broker answers") {
            Ok(Event::Incoming(Packet::ConnAck(_))) => is_connected = true,
            Ok(Event::Incoming(Packet::SubAck(answer))) => {
                return matches!(answer.return_codes[..], [SubscribeReasonCode::Success(_)]);
            }
            Ok(_) => {}
            Err(error) => {
                assert!(is_connected, "the broker refused the client: {error}");
                return false;
            }
        }
    }
}
