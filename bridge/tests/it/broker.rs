//! A broker that others run: what is received is acknowledged only when it is dealt with.

mod publishing;
mod sharing;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bridge::{
    Remote,
    broker::{Attempt, BrokerConnection, BrokerReceiver, ReceiveLease, ReceiveLeases, ReceivedMessage},
};
use futures::future::{BoxFuture, pending, ready};
use testing::{CountingRandom, Mosquitto, MqttClient, Proxy};
use tokio::sync::{Semaphore, mpsc};

fn connection(url: &str, dir: &Path) -> BrokerConnection {
    let settings = Remote { url: url.to_owned(), ..Remote::default() };
    BrokerConnection::new(&settings, "external_broker.mqtt", dir.to_owned(), &CountingRandom::default()).unwrap()
}

/// This broker shares, so nobody takes turns.
enum Sharing {
    Alone,
    WithOthers,
}

impl ReceiveLeases for Sharing {
    fn take_part<'a>(&'a self, _client_id: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(pending())
    }

    fn leave<'a>(&'a self, _client_id: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(ready(Ok(matches!(self, Self::WithOthers))))
    }

    fn acquire(&self) -> BoxFuture<'_, Result<Option<Box<dyn ReceiveLease>>, String>> {
        panic!("the broker has shared subscriptions");
    }
}

fn number(payload: &[u8]) -> u32 {
    std::str::from_utf8(payload).unwrap().parse().unwrap()
}

/// Refuses each message as often as this, and then passes it on.
struct Reluctant {
    refusals: u32,
    attempts: AtomicU32,
    taken: mpsc::UnboundedSender<u32>,
}

impl BrokerReceiver for Reluctant {
    fn receive(&self, message: ReceivedMessage) -> BoxFuture<'_, Attempt> {
        Box::pin(async move {
            let is_taken = self.attempts.fetch_add(1, Ordering::Relaxed) % (self.refusals + 1) == self.refusals;
            if is_taken {
                self.taken.send(number(&message.payload)).unwrap();
            }
            if is_taken { Attempt::Done } else { Attempt::Unavailable }
        })
    }
}

// Conformance: A downlink at which Airlock itself fails is offered again and then given up
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_dealt_with_is_offered_again_in_order() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let (dir, (taken, mut numbers)) = (tempfile::tempdir().unwrap(), mpsc::unbounded_channel());
    let receiver = Reluctant { refusals: 2, attempts: AtomicU32::new(0), taken };
    let subscription = connection(&mosquitto.url(), dir.path()).subscribe("+/devices/+/down", receiver, Sharing::Alone);
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

/// Fails at everything in one application, and counts the last attempts.
struct Broken(mpsc::UnboundedSender<u32>, Arc<AtomicU32>);

impl BrokerReceiver for Broken {
    fn receive(&self, message: ReceivedMessage) -> BoxFuture<'_, Attempt> {
        if message.topic.starts_with("broken/") {
            self.1.fetch_add(message.is_last_attempt.into(), Ordering::Relaxed);
            return Box::pin(ready(Attempt::Failed));
        }
        self.0.send(number(&message.payload)).unwrap();
        Box::pin(ready(Attempt::Done))
    }
}

/// There are more of them than places.
// Conformance: A downlink at which Airlock itself fails is offered again and then given up
#[tokio::test(flavor = "multi_thread")]
async fn what_always_fails_is_given_up_and_stops_nobody_else() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let (dir, (taken, mut numbers)) = (tempfile::tempdir().unwrap(), mpsc::unbounded_channel());
    let given_up = Arc::<AtomicU32>::default();
    let receiver = Broken(taken, given_up.clone());
    let subscription = connection(&mosquitto.url(), dir.path()).subscribe("+/devices/+/down", receiver, Sharing::Alone);
    let mut client = MqttClient::connect(&mosquitto.url()).await;
    establish(&mut client, &mut numbers).await;
    for device in 0..100 {
        client.publish(&format!("broken/devices/{device}/down"), "1").await;
    }
    client.publish("a/devices/1/down", "2").await;
    let others = async { while numbers.recv().await.unwrap() != 2 {} };
    testing::soon("the downlink of another application", others).await;
    subscription.stop().await;
    assert!(given_up.load(Ordering::Relaxed) >= 100 - 64, "the others had no places");
}

/// Never deals with anything, or with everything.
///
/// Notes the last number that was late.
struct Counter(mpsc::UnboundedSender<u32>, bool, Arc<AtomicU32>);

impl BrokerReceiver for Counter {
    fn receive(&self, message: ReceivedMessage) -> BoxFuture<'_, Attempt> {
        if message.is_late {
            self.2.store(number(&message.payload), Ordering::Relaxed);
        }
        self.0.send(number(&message.payload)).unwrap();
        Box::pin(async { if self.1 { Attempt::Done } else { Attempt::Unavailable } })
    }
}

/// Deals with numbers from 2 only when it is told to.
struct Slow {
    received: mpsc::UnboundedSender<u32>,
    permits: Arc<Semaphore>,
}

impl BrokerReceiver for Slow {
    fn receive(&self, message: ReceivedMessage) -> BoxFuture<'_, Attempt> {
        let number = number(&message.payload);
        self.received.send(number).unwrap();
        Box::pin(async move {
            if number >= 2 {
                self.permits.acquire().await.unwrap().forget();
            }
            Attempt::Done
        })
    }
}

/// Publishes this until it arrives: nothing is kept for a session that is not there yet.
async fn establish(client: &mut MqttClient, numbers: &mut mpsc::UnboundedReceiver<u32>) {
    while numbers.try_recv().is_err() {
        client.publish("a/devices/1/down", "0").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

// Conformance: A downlink at which Airlock itself fails is offered again and then given up
#[tokio::test(flavor = "multi_thread")]
async fn what_a_broker_repeats_is_dealt_with_once() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let (dir, (received, mut numbers)) = (tempfile::tempdir().unwrap(), mpsc::unbounded_channel());
    let permits = Arc::new(Semaphore::new(0));
    let proxy = Proxy::start(Some(mosquitto.address())).await;
    let connection = connection(&format!("mqtt://{}", proxy.address), dir.path());
    let receiver = Slow { received, permits: permits.clone() };
    let subscription = connection.subscribe("+/devices/+/down", receiver, Sharing::Alone);
    let mut client = MqttClient::connect(&mosquitto.url()).await;
    establish(&mut client, &mut numbers).await;
    client.publish("a/devices/1/down", "1").await;
    while numbers.recv().await.unwrap() != 1 {}
    for number in [2, 3] {
        client.publish("a/devices/1/down", number.to_string()).await;
    }
    assert_eq!(numbers.recv().await.unwrap(), 2);
    // The connection is lost before the acknowledgement of 2, and before 3 is begun.
    proxy.redirect(Some(mosquitto.address())).await;
    client.publish("a/devices/1/down", "4").await;
    permits.add_permits(1000);
    for expected in [3, 4] {
        assert_eq!(numbers.recv().await.unwrap(), expected);
    }
    subscription.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_dealt_with_comes_again_after_a_restart() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let (dir, (sender, mut numbers)) = (tempfile::tempdir().unwrap(), mpsc::unbounded_channel());
    let late = Arc::<AtomicU32>::default();
    let subscribe = |is_taken| {
        let counter = Counter(sender.clone(), is_taken, late.clone());
        connection(&mosquitto.url(), dir.path()).subscribe("+/devices/+/down", counter, Sharing::Alone)
    };
    let first = subscribe(false);
    let mut client = MqttClient::connect(&mosquitto.url()).await;
    while numbers.try_recv().is_err() {
        client.publish("a/devices/1/down", "7").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    first.stop().await;
    assert_eq!(late.load(Ordering::Relaxed), 0);
    client.publish("a/devices/1/down", "8").await;
    while numbers.try_recv().is_ok() {}
    let second = subscribe(true);
    let mut received = Vec::new();
    while received.last() != Some(&8) {
        received.push(numbers.recv().await.unwrap());
    }
    assert_eq!(received.first(), Some(&7), "it was acknowledged although nobody had dealt with it");
    assert_eq!(late.load(Ordering::Relaxed), 8, "others could have taken what came after it");
    second.stop().await;
}
