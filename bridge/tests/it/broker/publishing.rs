//! Messages to a broker are confirmed in order, or their publisher is told.

use std::time::Duration;

use bridge::broker::{BrokerMessage, BrokerPublisher, Offline, Unconfirmed};
use testing::{Mosquitto, MqttClient, Proxy};

use super::{connection, number};

const PATIENT: Duration = Duration::from_secs(60);

fn message(topic: &str, number: u32) -> Vec<BrokerMessage> {
    vec![BrokerMessage { topic: topic.to_owned(), payload: number.to_string().into() }]
}

async fn publish(publisher: &BrokerPublisher, topic: &str, number: u32) -> Result<(), Unconfirmed> {
    publisher.publish(topic, "kind".to_owned(), message(topic, number), Offline::Wait)?.await.unwrap()
}

// Conformance: What the broker does not confirm in time is withdrawn, not sent later
#[tokio::test(flavor = "multi_thread")]
async fn lost_connections_lose_nothing_and_keep_the_order_of_a_device() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut listener = MqttClient::connect(&mosquitto.url()).await;
    listener.subscribe("#").await;
    let proxy = Proxy::start(Some(mosquitto.address())).await;
    let publisher = connection(&format!("mqtt://{}", proxy.address), dir.path()).publish(PATIENT);
    let mut confirmations = Vec::new();
    for round in 0..20 {
        for device in ["a/devices/1/up", "a/devices/2/up", "b/devices/1/up"] {
            for number in 0..10 {
                let number = round * 10 + number;
                confirmations.push(
                    publisher.publish(device, "kind".to_owned(), message(device, number), Offline::Wait).unwrap(),
                );
            }
        }
        // In the middle of what is under way.
        let last = confirmations.len() - 1;
        (&mut confirmations[last - 25]).await.unwrap().unwrap();
        confirmations.remove(last - 25);
        proxy.redirect(Some(mosquitto.address())).await;
    }
    for confirmation in confirmations {
        confirmation.await.unwrap().unwrap();
    }
    let mut next = std::collections::HashMap::<String, u32>::new();
    while next.values().filter(|next| **next == 200).count() < 3 {
        let message = listener.next().await;
        let (number, next) = (number(&message.payload), next.entry(message.topic).or_default());
        assert!(number <= *next, "{number} came before {next}");
        *next = (*next).max(number + 1);
    }
    publisher.finished().await;
}

// Conformance: What the broker does not confirm in time is withdrawn, not sent later
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_confirmed_in_time_is_not_sent_later() {
    let Some(mut mosquitto) = Mosquitto::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let publisher = connection(&mosquitto.url(), dir.path()).publish(Duration::from_secs(10));
    let mut listener = MqttClient::connect_as(&mosquitto.url(), "listener").await;
    listener.subscribe("#").await;
    publish(&publisher, "a", 0).await.unwrap();
    assert_eq!(number(&listener.next().await.payload), 0);
    mosquitto.stop();
    for number in 1..5 {
        let confirmation = publisher.publish("a", "kind".to_owned(), message("a", number), Offline::Wait).unwrap();
        if number == 4 {
            assert_eq!(confirmation.await.unwrap(), Err(Unconfirmed::NoAnswer));
        }
    }
    mosquitto.start_again();
    while publish(&publisher, "a", 9).await.is_err() {}
    assert_eq!(number(&listener.next().await.payload), 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_broker_refuses_is_reported() {
    let configuration = "allow_anonymous true\nacl_file DIR/acl";
    let acl = [("acl", "topic readwrite open/#\n")];
    let Some(mosquitto) = Mosquitto::start_with_files(configuration, &acl) else { return };
    let dir = tempfile::tempdir().unwrap();
    let publisher = connection(&mosquitto.url(), dir.path()).publish(PATIENT);
    assert_eq!(publish(&publisher, "closed/a", 0).await, Err(Unconfirmed::Refused));
    assert_eq!(publish(&publisher, "open/a", 0).await, Ok(()));
}

// Conformance: What the broker does not confirm in time is withdrawn, not sent later
#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_publications_wait() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let nowhere = Proxy::start(None).await;
    let publisher = connection(&format!("mqtt://{}", nowhere.address), dir.path()).publish(PATIENT);
    let waiting: Result<Vec<_>, _> = (0..4096)
        .map(|number| publisher.publish(&number.to_string(), "kind".to_owned(), message("a", number), Offline::Wait))
        .collect();
    assert!(waiting.is_ok());
    assert!(matches!(
        publisher.publish("one", "kind".to_owned(), message("a", 0), Offline::Wait),
        Err(Unconfirmed::Busy)
    ));
    nowhere.redirect(Some(mosquitto.address())).await;
    for confirmation in waiting.unwrap() {
        assert_eq!(confirmation.await.unwrap(), Ok(()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_away_is_not_waited_for() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let (dir, nowhere) = (tempfile::tempdir().unwrap(), Proxy::start(None).await);
    let publisher = connection(&format!("mqtt://{}", nowhere.address), dir.path()).publish(PATIENT);
    let publish = |number| publisher.publish("a", "kind".to_owned(), message("a", number), Offline::Refuse);
    assert!(matches!(publish(0), Err(Unconfirmed::Disconnected)));
    nowhere.redirect(Some(mosquitto.address())).await;
    let confirmation = loop {
        if let Ok(confirmation) = publish(1) {
            break confirmation;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(confirmation.await.unwrap(), Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_broker_can_never_take_does_not_count_as_published() {
    let Some(mosquitto) = Mosquitto::start_with("allow_anonymous true\nmax_packet_size 1000") else { return };
    let dir = tempfile::tempdir().unwrap();
    let publisher = connection(&mosquitto.url(), dir.path()).publish(PATIENT);
    let message = |bytes| BrokerMessage { topic: "a".to_owned(), payload: vec![b'1'; bytes].into() };
    let publish =
        async |messages| publisher.publish("a", "kind".to_owned(), messages, Offline::Wait).unwrap().await.unwrap();
    assert!(matches!(publish(vec![message(2000)]).await, Err(Unconfirmed::Impossible(_))));
    assert_eq!(publish(vec![message(1), message(2000)]).await, Ok(()), "a field is not worth the message");
}
