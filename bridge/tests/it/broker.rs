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
    broker::{
        Attempt, BrokerConnection, BrokerMessage, BrokerPublisher, BrokerReceiver, Offline, ReceivedMessage, Turn,
        Turns, Unconfirmed,
    },
};
use futures::future::{BoxFuture, pending, ready};
use testing::{CountingRandom, FixedRandom, Mosquitto, MqttClient, Proxy};
use tokio::sync::{Semaphore, mpsc};

const PATIENT: Duration = Duration::from_secs(60);

fn connection(url: &str, dir: &Path) -> BrokerConnection {
    let settings = MqttSettings { url: url.to_owned(), ..MqttSettings::default() };
    BrokerConnection::new(&settings, "external_broker.mqtt", dir.to_owned(), &CountingRandom::default()).unwrap()
}

fn message(topic: &str, number: u32) -> Vec<BrokerMessage> {
    vec![BrokerMessage { topic: topic.to_owned(), payload: number.to_string().into() }]
}

async fn publish(publisher: &BrokerPublisher, topic: &str, number: u32) -> Result<(), Unconfirmed> {
    publisher.publish(topic, "kind".to_owned(), message(topic, number), Offline::Wait)?.await.unwrap()
}

/// This broker shares, and nobody else takes part.
struct NoTurns;

impl Turns for NoTurns {
    fn take_part<'a>(&'a self, _client_id: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(pending())
    }

    fn leave<'a>(&'a self, _client_id: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(ready(Ok(false)))
    }

    fn take(&self) -> BoxFuture<'_, Result<Option<Box<dyn Turn>>, String>> {
        panic!("the broker has shared subscriptions");
    }
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

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_dealt_with_is_offered_again_in_order() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let (dir, (taken, mut numbers)) = (tempfile::tempdir().unwrap(), mpsc::unbounded_channel());
    let receiver = Reluctant { refusals: 2, attempts: AtomicU32::new(0), taken };
    let subscription = connection(&mosquitto.url(), dir.path()).subscribe("+/devices/+/down", receiver, NoTurns);
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
#[tokio::test(flavor = "multi_thread")]
async fn what_always_fails_is_given_up_and_stops_nobody_else() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let (dir, (taken, mut numbers)) = (tempfile::tempdir().unwrap(), mpsc::unbounded_channel());
    let given_up = Arc::<AtomicU32>::default();
    let receiver = Broken(taken, given_up.clone());
    let subscription = connection(&mosquitto.url(), dir.path()).subscribe("+/devices/+/down", receiver, NoTurns);
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

#[tokio::test(flavor = "multi_thread")]
async fn what_a_broker_repeats_is_dealt_with_once() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let (dir, (received, mut numbers)) = (tempfile::tempdir().unwrap(), mpsc::unbounded_channel());
    let permits = Arc::new(Semaphore::new(0));
    let proxy = Proxy::start(Some(mosquitto.address())).await;
    let connection = connection(&format!("mqtt://{}", proxy.address), dir.path());
    let receiver = Slow { received, permits: permits.clone() };
    let subscription = connection.subscribe("+/devices/+/down", receiver, NoTurns);
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
        connection(&mosquitto.url(), dir.path()).subscribe("+/devices/+/down", counter, NoTurns)
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
            connection.subscribe("+/devices/+/down", Member(sender.clone(), count.clone()), NoTurns)
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

/// This broker shares, and others take part.
struct Others;

impl Turns for Others {
    fn take_part<'a>(&'a self, _client_id: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(pending())
    }

    fn leave<'a>(&'a self, _client_id: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(ready(Ok(true)))
    }

    fn take(&self) -> BoxFuture<'_, Result<Option<Box<dyn Turn>>, String>> {
        panic!("the broker has shared subscriptions");
    }
}

/// A connection with a client id of its own for each `place`.
fn member(mosquitto: &Mosquitto, dir: &Path, place: u8) -> BrokerConnection {
    let settings = MqttSettings { url: mosquitto.url(), ..MqttSettings::default() };
    BrokerConnection::new(&settings, "mqtt", dir.to_owned(), &FixedRandom::new([place])).unwrap()
}

/// Publishes numbers until one more reaches each of these.
async fn publish_to_all(client: &mut MqttClient, next: &mut u32, counts: &[&AtomicU32]) {
    let before: Vec<_> = counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    while counts.iter().zip(&before).any(|(count, before)| count.load(Ordering::Relaxed) == *before) {
        client.publish("a/devices/1/down", next.to_string()).await;
        *next += 1;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Takes what comes only when it may.
struct Gated(Member, Arc<Semaphore>);

impl BrokerReceiver for Gated {
    fn receive(&self, message: ReceivedMessage) -> BoxFuture<'_, Attempt> {
        Box::pin(async move {
            drop(self.1.acquire().await.unwrap());
            self.0.receive(message).await
        })
    }
}

/// One stops and does not return, with more messages than it may have in progress.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_stopped_leaves_everything_to_the_others() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let ((sender, mut numbers), gate) = (mpsc::unbounded_channel(), Arc::new(Semaphore::new(1)));
    let [left, stays] = [Arc::<AtomicU32>::default(), Arc::default()];
    let leaving = Gated(Member(sender.clone(), left.clone()), gate.clone());
    let leaving = member(&mosquitto, dirs[0].path(), 0).subscribe("+/devices/+/down", leaving, Others);
    let staying = Member(sender, stays.clone());
    let staying = member(&mosquitto, dirs[1].path(), 1).subscribe("+/devices/+/down", staying, Others);
    let (mut client, mut published) = (MqttClient::connect(&mosquitto.url()).await, 0);
    publish_to_all(&mut client, &mut published, &[&left, &stays]).await;
    let first = published;
    let closed = gate.clone().acquire_owned().await.unwrap();
    for _ in 0..300 {
        client.publish("a/devices/1/down", published.to_string()).await;
        published += 1;
    }
    let before = left.load(Ordering::Relaxed);
    drop(closed);
    leaving.stop().await;
    let at_stop = left.load(Ordering::Relaxed);
    assert!(at_stop - before > 64, "it took {before} and {at_stop}: the broker had to keep some");
    for _ in 0..40 {
        client.publish("a/devices/1/down", published.to_string()).await;
        published += 1;
    }
    let mut missing: std::collections::BTreeSet<_> = (first..published).collect();
    while !missing.is_empty() {
        let next = tokio::time::timeout(testing::PATIENCE, numbers.recv()).await;
        missing.remove(&next.unwrap_or_else(|_| panic!("{missing:?} went to who is away")).unwrap());
    }
    assert_eq!(left.load(Ordering::Relaxed), at_stop);
    staying.stop().await;
}

/// The session is from a time when it received.
#[tokio::test(flavor = "multi_thread")]
async fn who_no_longer_receives_takes_what_waits_and_leaves() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (sender, mut numbers) = mpsc::unbounded_channel();
    let [left, stays] = [Arc::<AtomicU32>::default(), Arc::default()];
    let receiver = || Member(sender.clone(), left.clone());
    let subscription = member(&mosquitto, dirs[0].path(), 0).subscribe("+/devices/+/down", receiver(), NoTurns);
    let (mut client, mut published) = (MqttClient::connect(&mosquitto.url()).await, 0);
    publish_to_all(&mut client, &mut published, &[&left]).await;
    subscription.stop().await;
    client.publish("a/devices/1/down", "1000").await;
    let staying = Member(sender.clone(), stays.clone());
    let staying = member(&mosquitto, dirs[1].path(), 1).subscribe("+/devices/+/down", staying, Others);
    publish_to_all(&mut client, &mut published, &[&stays]).await;
    let leaving = member(&mosquitto, dirs[0].path(), 0).leave("+/devices/+/down", receiver());
    while numbers.recv().await.unwrap() != 1000 {}
    loop {
        let before = left.load(Ordering::Relaxed);
        for _ in 0..10 {
            publish_to_all(&mut client, &mut published, &[&stays]).await;
        }
        if left.load(Ordering::Relaxed) == before {
            break;
        }
    }
    leaving.stop().await;
    staying.stop().await;
}

/// Counts what it takes.
struct Member(mpsc::UnboundedSender<u32>, Arc<AtomicU32>);

impl BrokerReceiver for Member {
    fn receive(&self, message: ReceivedMessage) -> BoxFuture<'_, Attempt> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.send(number(&message.payload)).unwrap();
        Box::pin(ready(Attempt::Done))
    }
}
