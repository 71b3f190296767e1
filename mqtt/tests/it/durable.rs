//! Sessions that outlive the process: over kills, between instances, and while the store is away.

mod backlog;
mod ends;
mod limits;
mod sharing;

use std::{sync::Arc, time::Duration};

use mqtt::{NotStored, Publication, Sharing};
use store::{Embedded, Key, Redis, RedisSettings, Store, Tag};
use testing::{ManualClock, RedisProcess};

use crate::harness::{
    Harness,
    gated_store::GatedStore,
    publish_up,
    raw_client::{Login, RawClient},
};

/// Time after which other processes know that a killed one is gone.
const LEASE: Duration = Duration::from_secs(10);

/// A store that any number of processes may share.
#[derive(Clone)]
struct Shared {
    store: Arc<dyn Store>,
    sharing: Sharing,
    clock: Arc<ManualClock>,
}

/// A store, and the brokers that use it one after the other, each killed before the next starts.
struct Processes {
    shared: Shared,
    access: Arc<GatedStore>,
    harness: Harness,
    count: u64,
}

fn in_memory() -> Shared {
    let clock = ManualClock::new();
    let store = Arc::new(Embedded::in_memory(clock.for_store()).unwrap());
    Shared { store, sharing: Sharing::Alone, clock }
}

impl Shared {
    async fn start(&self, instance: &str, process: u64) -> Harness {
        self.start_on(self.store.clone(), instance, process).await
    }

    async fn start_on(&self, store: Arc<dyn Store>, instance: &str, process: u64) -> Harness {
        Harness::start_stored(store, self.sharing, instance, process, self.clock.clone()).await
    }
}

impl Processes {
    async fn start(shared: Shared) -> Self {
        let access = GatedStore::new(&shared.store);
        let harness = shared.start_on(access.clone(), "one", 1).await;
        Self { shared, access, harness, count: 1 }
    }

    /// Kills the process and starts another.
    async fn restart(&mut self) {
        self.access.cut(true);
        self.count += 1;
        self.access = GatedStore::new(&self.shared.store);
        if self.shared.sharing == Sharing::Shared {
            self.shared.clock.advance(LEASE);
        }
        self.harness = self.shared.start_on(self.access.clone(), "one", self.count).await;
    }

    async fn publish(&self, body: &str) {
        publish_up(&mut self.harness.handler().await, "app-one", body).await;
    }

    async fn connect(&self, login: &Login) -> (RawClient, bool) {
        let (client, code, present) = RawClient::try_connect(self.harness.broker.address(), login).await;
        assert_eq!(code, 0);
        (client, present)
    }
}

fn login(version: u8, name: &'static str) -> Login {
    Login::new(version, "app-one", "account.read").with_client_id(name).persistent()
}

/// Each kind of store. The process of Redis ends with the last value.
async fn stores() -> (Vec<Shared>, Option<RedisProcess>) {
    let mut stores = vec![in_memory()];
    let redis = RedisProcess::start();
    if let Some(redis) = &redis {
        let settings = RedisSettings { urls: vec![redis.url()], ..RedisSettings::default() };
        let clock = ManualClock::new();
        let store = Arc::new(Redis::connect(&settings, clock.for_store()).await.unwrap());
        stores.push(Shared { store, sharing: Sharing::Shared, clock });
    }
    (stores, redis)
}

/// As if several processes used each of them.
async fn shared_stores() -> (Vec<Shared>, Option<RedisProcess>) {
    let (mut stores, redis) = stores().await;
    stores.iter_mut().for_each(|store| store.sharing = Sharing::Shared);
    (stores, redis)
}

async fn connect(harness: &Harness, login: &Login) -> (RawClient, bool) {
    let (client, code, present) = RawClient::try_connect(harness.broker.address(), login).await;
    assert_eq!(code, 0);
    (client, present)
}

/// Publishes an uplink; returns whether it is stored.
async fn is_stored(harness: &Harness, body: &str) -> bool {
    let publication = Publication { topic: "app-one/devices/dev/up".to_owned(), payload: body.to_owned().into() };
    harness.router.publish(&"app-one".parse().unwrap(), [publication]).stored().await.is_ok()
}

// Conformance: Persistent sessions keep messages while the client is away
#[tokio::test]
async fn a_killed_process_loses_no_session_and_no_message() {
    let (stores, _redis) = stores().await;
    for store in stores {
        let mut processes = Processes::start(store).await;
        for version in [4, 5] {
            let name = if version == 4 { "old" } else { "new" };
            let (mut client, present) = processes.connect(&login(version, name)).await;
            assert!(!present);
            assert_eq!(client.subscribe("+/devices/+/up").await, 1);
            for number in 0..5 {
                processes.publish(&number.to_string()).await;
                assert_eq!(client.next_unacknowledged().await.2, number.to_string());
            }
            // Killed with its client connected.
            processes.restart().await;
            drop(client);
            processes.publish("5").await;
            let (mut client, present) = processes.connect(&login(version, name)).await;
            assert!(present, "MQTT {version}");
            for number in 0..6 {
                let (_, packet_id, body) = client.next_unacknowledged().await;
                assert_eq!(body, number.to_string());
                client.acknowledge(packet_id).await;
            }
            client.ping().await;
            client.disconnect().await;
            // Killed while its client is away.
            processes.publish("6").await;
            processes.restart().await;
            processes.publish("7").await;
            let (mut client, present) = processes.connect(&login(version, name)).await;
            assert!(present);
            assert_eq!((client.next().await.1, client.next().await.1), ("6".to_owned(), "7".to_owned()));
            client.unsubscribe("+/devices/+/up").await;
            client.disconnect().await;
        }
    }
}

#[tokio::test]
async fn a_batch_for_many_sessions_is_one_commit_and_none_without_stored_sessions() {
    let processes = Processes::start(in_memory()).await;
    let (mut clean, _) = processes.connect(&Login::new(4, "app-one", "account.read")).await;
    clean.subscribe("#").await;
    let before = processes.access.commits();
    processes.publish("for a clean session").await;
    assert_eq!((clean.next().await.1, processes.access.commits()), ("for a clean session".to_owned(), before));

    for name in ["a", "b", "c"] {
        let (mut client, _) = processes.connect(&login(4, name)).await;
        client.subscribe("#").await;
        client.disconnect().await;
    }
    // This saves also that the clients have left.
    processes.publish("first").await;
    let before = processes.access.commits();
    let publication = |number| Publication { topic: format!("app-one/devices/dev-{number}/up"), payload: "x".into() };
    let published = processes.harness.router.publish(&"app-one".parse().unwrap(), (0..20).map(publication));
    published.stored().await.unwrap();
    assert_eq!(processes.access.commits(), before + 1);
}

// Conformance: While the store is away, nothing is accepted for stored sessions
#[tokio::test]
async fn accepts_nothing_for_stored_sessions_while_the_store_is_away() {
    let processes = Processes::start(in_memory()).await;
    let (mut client, _) = processes.connect(&login(5, "worker")).await;
    client.subscribe("#").await;
    processes.access.cut(true);
    let publication = Publication { topic: "app-one/devices/dev/up".to_owned(), payload: "lost?".into() };
    let published = processes.harness.router.publish(&"app-one".parse().unwrap(), [publication]);
    assert_eq!(published.stored().await, Err(NotStored));
    // A new session could not keep its promise either.
    for (version, expected) in [(4, 3), (5, 0x88)] {
        let (_, code, _) = RawClient::try_connect(processes.harness.broker.address(), &login(version, "other")).await;
        assert_eq!(code, expected);
    }
    // What does not have to be stored goes on.
    let (mut clean, _) = processes.connect(&Login::new(4, "app-one", "account.read")).await;
    clean.ping().await;
    processes.access.cut(false);
    client.ping().await;
    processes.publish("kept").await;
    assert_eq!((client.next().await.1, client.next().await.1), ("lost?".to_owned(), "kept".to_owned()));
}

/// A client that disconnects and acknowledges as it likes, and a server that is killed now and then: every message
/// arrives, and on each connection in order.
// Conformance: Persistent sessions keep messages while the client is away
#[tokio::test]
async fn delivers_everything_in_order_over_any_sequence_of_kills_and_reconnections() {
    for seed in 1..=3_u32 {
        let mut random = seed;
        let mut below = |limit: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 16) % limit
        };
        let mut processes = Processes::start(in_memory()).await;
        let (mut client, _) = processes.connect(&login(4, "worker")).await;
        client.subscribe("#").await;
        let (mut published, mut seen) = (0, 0);
        for _ in 0..60 {
            match below(6) {
                0 => processes.restart().await,
                1 => {}
                _ => {
                    for _ in 0..below(8) {
                        processes.publish(&published.to_string()).await;
                        published += 1;
                    }
                    continue;
                }
            }
            let present;
            (client, present) = processes.connect(&login(4, "worker")).await;
            assert!(present);
            let mut last = None;
            for _ in 0..below(40) {
                if last.map_or(seen, |last| last + 1) >= published {
                    break;
                }
                let (_, packet_id, body) = client.next_unacknowledged().await;
                let number: u32 = body.parse().unwrap();
                assert!(last.map_or(number <= seen, |last| number > last && number <= seen.max(last + 1)), "{number}");
                (last, seen) = (Some(number), seen.max(number + 1));
                client.acknowledge(packet_id).await;
            }
        }
        (client, _) = processes.connect(&login(4, "worker")).await;
        while seen < published {
            let number: u32 = client.next().await.1.parse().unwrap();
            assert!(number <= seen, "{number} came before {seen}");
            seen = seen.max(number + 1);
        }
    }
}

/// The downlink is in the queue of its device: that its copy cannot be stored for a subscriber must not make the client
/// send it again.
#[tokio::test]
async fn acknowledges_a_downlink_that_is_kept_although_its_copy_is_not() {
    let processes = Processes::start(in_memory()).await;
    let (mut subscriber, _) = processes.connect(&login(4, "worker")).await;
    subscriber.subscribe("#").await;
    for version in [4, 5] {
        let (mut sender, _) = processes.connect(&Login::new(version, "app-one", "account.write")).await;
        processes.access.cut(true);
        sender.publish("app-one/devices/dev/down", "kept").await;
        assert_eq!(processes.harness.handler().await.next().await.1, "kept");
        processes.access.cut(false);
    }
}

fn key(path: &str) -> Key {
    Key::new(&Tag::application("app-one").unwrap(), path).unwrap()
}

/// The keys of the messages in the log.
async fn logged(store: &Shared) -> usize {
    store.store.list(&key("mqtt/log/"), None, 1000).await.unwrap().len()
}

// Conformance: Persistent sessions keep messages while the client is away
#[tokio::test]
async fn what_was_in_flight_comes_again_as_such_after_a_kill() {
    let mut processes = Processes::start(in_memory()).await;
    let (mut client, _) = processes.connect(&login(4, "worker")).await;
    client.subscribe("#").await;
    for body in ["1", "2", "3"] {
        processes.publish(body).await;
    }
    let sent: Vec<_> = [client.next_unacknowledged().await.1, client.next_unacknowledged().await.1].into();
    client.disconnect().await;
    processes.publish("4").await;
    processes.restart().await;
    let (mut client, _) = processes.connect(&login(4, "worker")).await;
    let topic = "app-one/devices/dev/up".len() + 2;
    for packet_id in sent {
        // PUBLISH with QoS 1 and DUP.
        let body = client.wait_for(0x3a).await;
        assert_eq!(body[topic..topic + 2], packet_id.to_be_bytes());
        client.acknowledge(packet_id).await;
    }
}

/// Acknowledgements are saved a little later, which the killed process could not do any more.
#[tokio::test]
async fn what_may_have_been_sent_before_a_kill_comes_again_as_a_duplicate() {
    let mut processes = Processes::start(in_memory()).await;
    let (mut client, _) = processes.connect(&login(4, "worker")).await;
    client.subscribe("#").await;
    for body in ["1", "2", "3"] {
        processes.publish(body).await;
    }
    processes.access.cut(true);
    let mut sent = Vec::new();
    for _ in 0..3 {
        let (header, packet_id, body) = client.next_unacknowledged().await;
        assert_eq!(header, 0x32);
        client.acknowledge(packet_id).await;
        sent.push((packet_id, body));
    }
    client.ping().await;
    // Over two kills, of which the second comes before the client is back.
    processes.restart().await;
    processes.publish("4").await;
    processes.restart().await;
    let (mut client, _) = processes.connect(&login(4, "worker")).await;
    for (packet_id, body) in sent {
        assert_eq!(client.next_unacknowledged().await, (0x3a, packet_id, body));
        client.acknowledge(packet_id).await;
    }
    // The client was away when it came.
    assert_eq!(client.next_unacknowledged().await.2, "4");
    processes.publish("5").await;
    let (header, _, body) = client.next_unacknowledged().await;
    assert_eq!((header, body.as_str()), (0x32, "5"));
}
