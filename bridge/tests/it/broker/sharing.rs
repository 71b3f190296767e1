//! Processes share what is published once, also while one comes or goes.

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
    broker::{Attempt, BrokerConnection, BrokerReceiver, ReceivedMessage},
};
use futures::future::{BoxFuture, ready};
use testing::{FixedRandom, Mosquitto, MqttClient};
use tokio::sync::{Semaphore, mpsc};

use super::{Sharing, number};

#[tokio::test(flavor = "multi_thread")]
async fn processes_share_what_is_published_once() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (sender, mut numbers) = mpsc::unbounded_channel();
    let settings = Remote { url: mosquitto.url(), ..Remote::default() };
    let counts: Vec<_> = (0..2).map(|_| Arc::new(AtomicU32::new(0))).collect();
    let subscriptions: Vec<_> = dirs
        .iter()
        .zip(&counts)
        .enumerate()
        .map(|(place, (dir, count))| {
            let random = FixedRandom::new([place as u8]);
            let connection = BrokerConnection::new(&settings, "mqtt", dir.path().to_owned(), &random).unwrap();
            connection.subscribe("+/devices/+/down", Member(sender.clone(), count.clone()), Sharing::Alone)
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

/// A connection with a client id of its own for each `place`.
fn member(mosquitto: &Mosquitto, dir: &Path, place: u8) -> BrokerConnection {
    let settings = Remote { url: mosquitto.url(), ..Remote::default() };
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
// Conformance: A handler that stops leaves its share of downlinks to the others
#[tokio::test(flavor = "multi_thread")]
async fn who_is_stopped_leaves_everything_to_the_others() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let ((sender, mut numbers), gate) = (mpsc::unbounded_channel(), Arc::new(Semaphore::new(1)));
    let [left, stays] = [Arc::<AtomicU32>::default(), Arc::default()];
    let leaving = Gated(Member(sender.clone(), left.clone()), gate.clone());
    let leaving = member(&mosquitto, dirs[0].path(), 0).subscribe("+/devices/+/down", leaving, Sharing::WithOthers);
    let staying = Member(sender, stays.clone());
    let staying = member(&mosquitto, dirs[1].path(), 1).subscribe("+/devices/+/down", staying, Sharing::WithOthers);
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
// Conformance: A handler that stops leaves its share of downlinks to the others
#[tokio::test(flavor = "multi_thread")]
async fn who_no_longer_receives_takes_what_waits_and_leaves() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (sender, mut numbers) = mpsc::unbounded_channel();
    let [left, stays] = [Arc::<AtomicU32>::default(), Arc::default()];
    let receiver = || Member(sender.clone(), left.clone());
    let subscription = member(&mosquitto, dirs[0].path(), 0).subscribe("+/devices/+/down", receiver(), Sharing::Alone);
    let (mut client, mut published) = (MqttClient::connect(&mosquitto.url()).await, 0);
    publish_to_all(&mut client, &mut published, &[&left]).await;
    subscription.stop().await;
    client.publish("a/devices/1/down", "1000").await;
    let staying = Member(sender.clone(), stays.clone());
    let staying = member(&mosquitto, dirs[1].path(), 1).subscribe("+/devices/+/down", staying, Sharing::WithOthers);
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
