//! A broker that others run: what is published is confirmed, in order, and what is received is acknowledged only when it
//! is dealt with.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bridge::{
    MqttSettings,
    broker::{BrokerConnection, BrokerMessage, BrokerPublisher, BrokerReceiver, ReceivedMessage, Unconfirmed},
};
use futures::future::BoxFuture;
use testing::{CountingRandom, FixedRandom, Mosquitto, MqttClient, Proxy};
use tokio::sync::mpsc;

const PATIENT: Duration = Duration::from_secs(60);

fn connection(url: &str, dir: &Path) -> BrokerConnection {
    let settings = MqttSettings { url: url.to_owned(), ..MqttSettings::default() };
    BrokerConnection::new(&settings, "external_broker.mqtt", dir.to_owned(), &CountingRandom::default()).unwrap()
}

fn message(topic: &str, number: u32) -> Vec<BrokerMessage> {
    vec![BrokerMessage { topic: topic.to_owned(), payload: number.to_string().into() }]
}

async fn publish(publisher: &BrokerPublisher, topic: &str, number: u32) -> Result<(), Unconfirmed> {
    publisher.publish(topic, "kind".to_owned(), message(topic, number))?.await.unwrap()
}

fn number(payload: &[u8]) -> u32 {
    std::str::from_utf8(payload).unwrap().parse().unwrap()
}

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
                confirmations.push(publisher.publish(device, "kind".to_owned(), message(device, number)).unwrap());
            }
        }
        // In the middle of what is under way.
        let last = confirmations.len() - 1;
        (&mut confirmations[last - 25]).await.unwrap().unwrap();
        confirmations.remove(last - 25);
        proxy.redirect(Some(mosquitto.address()));
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

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_confirmed_in_time_is_not_sent_later() {
    let Some(mut mosquitto) = Mosquitto::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let publisher = connection(&mosquitto.url(), dir.path()).publish(Duration::from_secs(3));
    let mut listener = MqttClient::connect_as(&mosquitto.url(), "listener").await;
    listener.subscribe("#").await;
    publish(&publisher, "a", 0).await.unwrap();
    assert_eq!(number(&listener.next().await.payload), 0);
    mosquitto.stop();
    for number in 1..5 {
        let confirmation = publisher.publish("a", "kind".to_owned(), message("a", number)).unwrap();
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

#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_publications_wait() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let nowhere = Proxy::start(None).await;
    let publisher = connection(&format!("mqtt://{}", nowhere.address), dir.path()).publish(PATIENT);
    let waiting: Result<Vec<_>, _> = (0..4096)
        .map(|number| publisher.publish(&number.to_string(), "kind".to_owned(), message("a", number)))
        .collect();
    assert!(waiting.is_ok());
    assert!(matches!(publisher.publish("one", "kind".to_owned(), message("a", 0)), Err(Unconfirmed::Busy)));
    nowhere.redirect(Some(mosquitto.address()));
    for confirmation in waiting.unwrap() {
        assert_eq!(confirmation.await.unwrap(), Ok(()));
    }
}

/// Refuses each message as often as this, and then passes it on.
struct Reluctant {
    refusals: u32,
    attempts: AtomicU32,
    taken: mpsc::UnboundedSender<u32>,
}

impl BrokerReceiver for Reluctant {
    fn receive(&self, message: ReceivedMessage) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let is_taken = self.attempts.fetch_add(1, Ordering::Relaxed) % (self.refusals + 1) == self.refusals;
            if is_taken {
                self.taken.send(number(&message.payload)).unwrap();
            }
            is_taken
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_dealt_with_is_offered_again_in_order() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let (dir, (taken, mut numbers)) = (tempfile::tempdir().unwrap(), mpsc::unbounded_channel());
    let receiver = Reluctant { refusals: 2, attempts: AtomicU32::new(0), taken };
    let subscription = connection(&mosquitto.url(), dir.path()).subscribe("+/devices/+/down", receiver);
    let mut sender = MqttClient::connect(&mosquitto.url()).await;
    let mut expected = Vec::new();
    // Nothing is kept for a session that is not there yet.
    while numbers.try_recv().is_err() {
        sender.publish("a/devices/1/down", "0").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for number in 1..5 {
        sender.publish("a/devices/1/down", number.to_string()).await;
        expected.push(number);
    }
    let mut received = Vec::new();
    while received.last() != Some(&4) {
        received.push(numbers.recv().await.unwrap());
    }
    received.retain(|number| *number > 0);
    assert_eq!(received, expected);
    subscription.stop().await;
}

/// Never deals with anything, or with everything.
struct Counter(mpsc::UnboundedSender<u32>, bool);

impl BrokerReceiver for Counter {
    fn receive(&self, message: ReceivedMessage) -> BoxFuture<'_, bool> {
        self.0.send(number(&message.payload)).unwrap();
        Box::pin(async { self.1 })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_dealt_with_comes_again_after_a_restart() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let (dir, (sender, mut numbers)) = (tempfile::tempdir().unwrap(), mpsc::unbounded_channel());
    let subscribe = |is_taken| {
        connection(&mosquitto.url(), dir.path()).subscribe("+/devices/+/down", Counter(sender.clone(), is_taken))
    };
    let first = subscribe(false);
    let mut client = MqttClient::connect(&mosquitto.url()).await;
    while numbers.try_recv().is_err() {
        client.publish("a/devices/1/down", "7").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    first.stop().await;
    client.publish("a/devices/1/down", "8").await;
    while numbers.try_recv().is_ok() {}
    let second = subscribe(true);
    let mut received = Vec::new();
    while received.last() != Some(&8) {
        received.push(numbers.recv().await.unwrap());
    }
    assert_eq!(received.first(), Some(&7), "it was acknowledged although nobody had dealt with it");
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_share_what_is_published_once() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (sender, mut numbers) = mpsc::unbounded_channel();
    let settings = MqttSettings { url: mosquitto.url(), ..MqttSettings::default() };
    let counts: Vec<_> = (0..2).map(|_| Arc::new(AtomicU32::new(0))).collect();
    let subscriptions: Vec<_> = dirs
        .iter()
        .zip(&counts)
        .enumerate()
        .map(|(place, (dir, count))| {
            let random = FixedRandom::new([place as u8]);
            let connection = BrokerConnection::new(&settings, "mqtt", dir.path().to_owned(), &random).unwrap();
            connection.subscribe("+/devices/+/down", Member(sender.clone(), count.clone()))
        })
        .collect();
    let mut client = MqttClient::connect(&mosquitto.url()).await;
    let mut published = 0;
    // Until both take part.
    while counts.iter().any(|count| count.load(Ordering::Relaxed) < 20) {
        client.publish("a/devices/1/down", published.to_string()).await;
        published += 1;
    }
    let mut received = Vec::new();
    while received.last() != Some(&(published - 1)) {
        received.push(numbers.recv().await.unwrap());
    }
    for subscription in subscriptions {
        subscription.stop().await;
    }
    while let Ok(number) = numbers.try_recv() {
        received.push(number);
    }
    let first = *received.iter().min().unwrap();
    received.sort_unstable();
    received.dedup();
    let total: u32 = counts.iter().map(|count| count.load(Ordering::Relaxed)).sum();
    assert_eq!((received.len() as u32, total), (published - first, published - first), "each came once");
}

/// Counts what it takes.
struct Member(mpsc::UnboundedSender<u32>, Arc<AtomicU32>);

impl BrokerReceiver for Member {
    fn receive(&self, message: ReceivedMessage) -> BoxFuture<'_, bool> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.send(number(&message.payload)).unwrap();
        Box::pin(async { true })
    }
}
