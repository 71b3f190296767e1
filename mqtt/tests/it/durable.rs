//! Sessions that outlive the process: over kills, between instances, and while the store is away.

use std::{sync::Arc, time::Duration};

use mqtt::{NotStored, Publication, Sharing};
use serde_json::json;
use store::{Batch, Commit, Embedded, Key, Redis, RedisSettings, Store, Tag};
use testing::{ManualClock, RedisProcess};

use crate::{
    gated_store::GatedStore,
    harness::{Harness, READ, eventually, publish_up},
    raw_client::{Login, RawClient},
};

/// How long after a process was killed others know that it is gone.
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
async fn a_clean_session_leaves_nothing_behind() {
    let mut processes = Processes::start(in_memory()).await;
    let (mut client, _) = processes.connect(&login(4, "worker")).await;
    client.subscribe("#").await;
    client.disconnect().await;
    processes.publish("never delivered").await;
    let clean = Login { clean: true, ends: true, ..login(4, "worker") };
    let (client, present) = processes.connect(&clean).await;
    assert!(!present);
    client.disconnect().await;
    // Whatever is saved after it comes after its deletion.
    let (mut other, _) = processes.connect(&login(4, "other")).await;
    other.subscribe("#").await;
    processes.restart().await;
    let (mut client, present) = processes.connect(&login(4, "worker")).await;
    assert!(!present);
    client.subscribe("#").await;
    processes.publish("new").await;
    assert_eq!(client.next().await.1, "new");
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

#[tokio::test]
async fn a_session_follows_its_client_to_another_instance() {
    let (stores, _redis) = shared_stores().await;
    for store in stores {
        let (one, two) = (store.start("one", 1).await, store.start("two", 2).await);
        let mut old = RawClient::connect(one.broker.address(), &login(5, "worker")).await;
        old.subscribe("#").await;
        for number in 0..3 {
            publish_up(&mut one.handler().await, "app-one", &number.to_string()).await;
            old.next_unacknowledged().await;
        }
        let (mut new, code, present) = RawClient::try_connect(two.broker.address(), &login(5, "worker")).await;
        assert_eq!((code, present), (0, true));
        for number in 0..3 {
            assert_eq!(new.next().await.1, number.to_string());
        }
        // The first instance finds out when it writes, and ends the connection that it had. Until then it counted on a
        // subscriber, which will not get this.
        assert!(!is_stored(&one, "nobody is here any more").await);
        assert_eq!(old.closed().await, Some(0x8e));
        assert!(is_stored(&one, "nobody is here any more").await);
        publish_up(&mut two.handler().await, "app-one", "3").await;
        assert_eq!(new.next().await.1, "3");
        new.disconnect().await;
        publish_up(&mut two.handler().await, "app-one", "4").await;
        // And back.
        let (mut back, _, present) = RawClient::try_connect(one.broker.address(), &login(5, "worker")).await;
        assert!(present);
        publish_up(&mut one.handler().await, "app-one", "5").await;
        assert_eq!((back.next().await.1, back.next().await.1), ("4".to_owned(), "5".to_owned()));
    }
}

#[tokio::test]
async fn keeps_the_newest_thousand_messages_and_says_how_many_were_dropped() {
    let mut processes = Processes::start(in_memory()).await;
    let (mut client, _) = processes.connect(&login(4, "worker")).await;
    client.subscribe("#").await;
    client.disconnect().await;
    let publication =
        |number: i32| Publication { topic: "app-one/devices/dev/up".to_owned(), payload: number.to_string().into() };
    let published = processes.harness.router.publish(&"app-one".parse().unwrap(), (0..1100).map(publication));
    published.stored().await.unwrap();
    // What is saved next has what was dropped.
    processes.publish("1100").await;
    processes.publish("1101").await;
    processes.restart().await;
    let (mut client, _) = processes.connect(&login(4, "worker")).await;
    let mut told = Vec::new();
    let mut next = 102;
    while next < 1102 || told.is_empty() {
        let (topic, body) = client.next().await;
        if topic == "app-one/events/dropped" {
            told.push(body);
        } else {
            assert_eq!(body, next.to_string());
            next += 1;
        }
    }
    let told: serde_json::Value = serde_json::from_str(&told[0]).unwrap();
    assert_eq!(told["client_id"], "worker");
    assert!((100..=102).contains(&told["messages"].as_u64().unwrap()), "{told}");
}

/// A client that disconnects and acknowledges as it likes, and a server that is killed now and then: every message
/// arrives, and on each connection in order.
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

/// Handlers with one id behind one address are restarted one after the other.
#[tokio::test]
async fn a_process_that_starts_leaves_others_their_sessions() {
    let (stores, _redis) = shared_stores().await;
    for store in stores {
        let one = store.start("handler", 1).await;
        let (mut worker, _) = connect(&one, &login(5, "worker")).await;
        worker.subscribe("#").await;
        let (mut sleeper, _) = connect(&one, &login(4, "sleeper")).await;
        sleeper.subscribe("#").await;
        sleeper.disconnect().await;
        let starting = async { store.start("handler", 2).await };
        let _two = starting.await;
        for body in ["1", "2", "3"] {
            assert!(is_stored(&one, body).await);
            assert_eq!(worker.next().await.1, body);
        }
        let (mut sleeper, present) = connect(&one, &login(4, "sleeper")).await;
        assert!(present);
        for body in ["1", "2", "3"] {
            assert_eq!(sleeper.next().await.1, body);
        }
    }
}

/// A process that is killed leaves its sessions to another, with another id, which collects what comes for them.
#[tokio::test]
async fn sessions_of_a_killed_process_are_adopted() {
    let (stores, _redis) = shared_stores().await;
    for store in stores {
        let access = GatedStore::new(&store.store);
        let one = store.start_on(access.clone(), "one", 1).await;
        let two = store.start("two", 2).await;
        let (mut client, _) = connect(&one, &login(5, "worker")).await;
        client.subscribe("#").await;
        client.disconnect().await;
        assert!(is_stored(&one, "1").await);
        access.cut(true);
        store.clock.advance(LEASE);
        eventually("the adoption", async {
            // Two may say no while it takes over, and drops uplinks for a session of which it does not know.
            while owner_of_only_session(&store).await.split('-').next() != Some("0000000000000002") {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
        let three = store.start("two", 3).await;
        eventually("uplinks for the session", async {
            loop {
                assert!(is_stored(&two, "2").await);
                if logged(&store).await > 1 {
                    break;
                }
            }
        })
        .await;
        let (mut client, present) = connect(&three, &login(5, "worker")).await;
        assert!(present);
        assert_eq!((client.next().await.1, client.next().await.1), ("1".to_owned(), "2".to_owned()));
    }
}

/// The process that names the owner of the only session of `app-one`.
async fn owner_of_only_session(store: &Shared) -> String {
    let owners = store.store.list(&key("mqtt/owner/"), None, 10).await.unwrap();
    assert_eq!(owners.len(), 1);
    String::from_utf8(owners[0].value.to_vec()).unwrap()
}

/// The embedded store has only one process, whatever it is called.
#[tokio::test]
async fn sessions_survive_that_the_instance_gets_another_name() {
    let store = in_memory();
    let one = store.start("one", 1).await;
    let (mut client, _) = connect(&one, &login(5, "worker")).await;
    client.subscribe("#").await;
    client.disconnect().await;
    assert!(is_stored(&one, "1").await);
    let two = store.start("another", 2).await;
    assert!(is_stored(&two, "2").await);
    let (mut client, present) = connect(&two, &login(5, "worker")).await;
    assert!(present);
    assert_eq!((client.next().await.1, client.next().await.1), ("1".to_owned(), "2".to_owned()));
}

/// Every record of a session that is never served again goes, also if it was connected.
#[tokio::test]
async fn every_record_of_a_session_expires() {
    let store = in_memory();
    let one = store.start("one", 1).await;
    let (mut client, _) = connect(&one, &login(5, "worker")).await;
    client.subscribe("#").await;
    assert_eq!(store.store.list(&key("mqtt/session/"), None, 10).await.unwrap().len(), 1);
    store.clock.advance(Duration::from_secs(2 * 24 * 3600));
    assert_eq!(store.store.list(&key("mqtt/session/"), None, 10).await.unwrap(), []);
    let _two = store.start("two", 2).await;
    assert_eq!(store.store.list(&key("mqtt/owner/"), None, 10).await.unwrap(), []);
}

/// What one process removes may be another's by now.
#[tokio::test]
async fn a_stale_copy_of_a_session_deletes_nothing() {
    let (stores, _redis) = shared_stores().await;
    for store in stores {
        let one = store.start("one", 1).await;
        let access = GatedStore::new(&store.store);
        let two = store.start_on(access.clone(), "two", 2).await;
        let (mut client, _) = connect(&one, &login(5, "worker")).await;
        client.subscribe("#").await;
        client.disconnect().await;
        for body in ["1", "2", "3"] {
            assert!(is_stored(&one, body).await);
        }
        let (mut client, present) = connect(&two, &login(5, "worker")).await;
        assert!(present);
        for body in ["1", "2", "3"] {
            assert_eq!(client.next_unacknowledged().await.2, body);
        }
        // The first process removes the copy that it still has.
        one.authenticator.revoke("app-one", "account.read");
        one.broker.check_credentials().await;
        one.broker.shutdown().await;
        access.cut(true);
        store.clock.advance(LEASE);
        let three = store.start("three", 3).await;
        let (mut client, present) = connect(&three, &login(5, "worker")).await;
        assert!(present);
        for body in ["1", "2", "3"] {
            assert_eq!(client.next().await.1, body);
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

/// A client that wants a clean session gets one wherever it connects, and the old one is gone everywhere.
#[tokio::test]
async fn a_clean_session_ends_the_one_that_another_process_has() {
    let (stores, _redis) = shared_stores().await;
    for store in stores {
        let (one, two) = (store.start("one", 1).await, store.start("two", 2).await);
        for (version, name) in [(4, "old"), (5, "new")] {
            let (mut client, _) = connect(&one, &login(version, name)).await;
            client.subscribe("#").await;
            assert!(is_stored(&one, "1").await);
            client.next_unacknowledged().await;
            let clean = Login { clean: true, ends: true, ..login(version, name) };
            let (mut cleaner, present) = connect(&two, &clean).await;
            assert!(!present);
            cleaner.ping().await;
            // The first process finds out when it writes.
            assert!(!is_stored(&one, "2").await);
            client.closed().await;
            let (_, present) = connect(&one, &login(version, name)).await;
            assert!(!present, "MQTT {version}");
        }
    }
}

/// MQTT 5 allows to continue a session that is to end with this connection.
#[tokio::test]
async fn a_session_is_continued_elsewhere_by_a_client_that_will_not_return() {
    let (stores, _redis) = shared_stores().await;
    for store in stores {
        let (one, two) = (store.start("one", 1).await, store.start("two", 2).await);
        let (mut client, _) = connect(&one, &login(5, "worker")).await;
        client.subscribe("#").await;
        client.disconnect().await;
        assert!(is_stored(&one, "1").await);
        let last = Login { ends: true, ..login(5, "worker") };
        let (mut client, present) = connect(&two, &last).await;
        assert!(present);
        assert_eq!(client.next().await.1, "1");
        client.disconnect().await;
        let (_, present) = connect(&two, &login(5, "worker")).await;
        assert!(!present);
    }
}

fn key(path: &str) -> Key {
    Key::new(&Tag::application("app-one").unwrap(), path).unwrap()
}

/// The keys of the messages in the log.
async fn logged(store: &Shared) -> usize {
    store.store.list(&key("mqtt/log/"), None, 1000).await.unwrap().len()
}

/// What earlier versions stored of more sessions than there may be, each with a subscription to everything.
async fn store_sessions(store: &Shared, count: usize) {
    let record = json!({
        "filters": { "app-one/#": { "qos": 1, "no_local": false, "id": null } },
        "expiry_ms": 3_600_000, "away_since_ms": null, "in_flight": [], "waiting_from": 0, "dropped": 0,
    });
    let index = Key::new(&Tag::service("mqtt").unwrap(), "mqtt/application/app-one").unwrap();
    assert_eq!(store.store.commit(Batch::new().put(index, "")).await.unwrap(), Commit::Done);
    for number in 0..count {
        let session = key(&format!("mqtt/session/{number:032x}"));
        let batch = Batch::new().put(key(&format!("mqtt/owner/{number:032x}")), "one").put(session, record.to_string());
        assert_eq!(store.store.commit(batch).await.unwrap(), Commit::Done);
    }
}

#[tokio::test]
async fn starts_with_any_number_of_sessions_and_stores_for_as_many_as_there_may_be() {
    let (stores, _redis) = stores().await;
    for store in stores {
        store_sessions(&store, 1100).await;
        let mut processes = Processes::start(store).await;
        for number in 0..300 {
            processes.publish(&number.to_string()).await;
        }
        let (mut client, _) = processes.connect(&login(4, "one-more")).await;
        client.subscribe("#").await;
        processes.publish("last").await;
        assert_eq!(client.next().await.1, "last");
        processes.restart().await;
        let (_, present) = processes.connect(&login(4, "one-more")).await;
        assert!(present);
    }
}

/// Each of them was to end with its connection at first, and a commit has room for 500.
#[tokio::test]
async fn refuses_more_sessions_that_become_persistent_than_can_be_stored() {
    let processes = Processes::start(in_memory()).await;
    let address = processes.harness.broker.address();
    let mut clients = Vec::new();
    let mut stored = 0;
    for number in 0..600 {
        let name: &'static str = Box::leak(number.to_string().into_boxed_str());
        let login = Login::new(5, "app-one", "account.read").with_client_id(name);
        let mut client = RawClient::connect(address, &login).await;
        client.subscribe("#").await;
        let (again, code, _) = RawClient::try_connect(address, &login.persistent()).await;
        assert!([0, 0x97].contains(&code), "{code:#x}");
        stored += usize::from(code == 0);
        clients.extend([client, again]);
    }
    assert_eq!(stored, 400);
    processes.publish("all").await;
    // One whose client is away makes room.
    clients.swap_remove(1).disconnect().await;
    let (mut client, _) = processes.connect(&login(5, "one-more")).await;
    client.subscribe("#").await;
    processes.publish("last").await;
    assert_eq!(client.next().await.1, "last");
}

#[tokio::test]
async fn clients_with_one_credential_cannot_displace_the_sessions_of_another() {
    let processes = Processes::start(in_memory()).await;
    let (mut reader, _) = processes.connect(&login(4, "reader")).await;
    reader.subscribe("#").await;
    reader.disconnect().await;
    processes.publish("waiting").await;
    for key in ["account.both", "account.write"] {
        for number in 0..205 {
            let name: &'static str = Box::leak(number.to_string().into_boxed_str());
            let login = Login::new(4, "app-one", key).with_client_id(name).persistent();
            processes.connect(&login).await.0.disconnect().await;
        }
    }
    let (mut reader, present) = processes.connect(&login(4, "reader")).await;
    assert!(present);
    assert_eq!(reader.next().await.1, "waiting");
}

#[tokio::test]
async fn what_only_publishes_is_not_stored() {
    let processes = Processes::start(in_memory()).await;
    let login = Login::new(5, "app-one", "account.write").with_client_id("sender").persistent();
    let (mut sender, _) = processes.connect(&login).await;
    sender.publish("app-one/devices/dev/down", "kept").await;
    sender.disconnect().await;
    assert_eq!(processes.access.commits(), 0);
    // As long as the process lives, its session does too.
    assert!(processes.connect(&login).await.1);
}

/// Each client is told, and none waits for the others.
#[tokio::test]
async fn refuses_clients_while_the_store_does_not_answer() {
    let processes = Processes::start(in_memory()).await;
    processes.access.hang();
    let address = processes.harness.broker.address();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let refused = names.map(|name| async move { RawClient::try_connect(address, &login(4, name)).await.1 });
    assert_eq!(futures::future::join_all(refused).await, [3; 8]);
}

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

#[tokio::test]
async fn a_session_that_becomes_persistent_keeps_what_it_has() {
    let mut processes = Processes::start(in_memory()).await;
    let ending = Login { ends: true, ..login(5, "worker") };
    let (mut first, _) = processes.connect(&ending).await;
    first.subscribe("#").await;
    for body in ["1", "2"] {
        processes.publish(body).await;
        assert_eq!(first.next_unacknowledged().await.2, body);
    }
    let (_second, present) = processes.connect(&login(5, "worker")).await;
    assert!(present);
    processes.restart().await;
    let (mut client, present) = processes.connect(&login(5, "worker")).await;
    assert!(present);
    assert_eq!((client.next().await.1, client.next().await.1), ("1".to_owned(), "2".to_owned()));
}

#[tokio::test]
async fn a_message_that_everybody_has_goes_although_one_recipient_is_gone() {
    let mut processes = Processes::start(in_memory()).await;
    for name in ["stays", "goes"] {
        let (mut client, _) = processes.connect(&login(4, name)).await;
        client.subscribe("#").await;
        client.disconnect().await;
    }
    processes.publish("1").await;
    let clean = Login { clean: true, ends: true, ..login(4, "goes") };
    processes.connect(&clean).await.0.disconnect().await;
    processes.restart().await;
    assert_eq!(logged(&processes.shared).await, 1);
    let (mut client, _) = processes.connect(&login(4, "stays")).await;
    assert_eq!(client.next().await.1, "1");
    client.ping().await;
    client.disconnect().await;
    eventually("the deletion", async {
        while logged(&processes.shared).await > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

/// A clean session in between must not bring back what an older session with the same name left in the log.
#[tokio::test]
async fn a_new_session_gets_nothing_of_an_older_one_with_its_name() {
    let (stores, _redis) = shared_stores().await;
    for store in stores {
        let one = store.start("one", 1).await;
        let (mut client, _) = connect(&one, &login(5, "worker")).await;
        client.subscribe("#").await;
        client.disconnect().await;
        assert!(is_stored(&one, "old").await);
        let two = store.start("two", 2).await;
        let clean = Login { clean: true, ends: false, ..login(5, "worker") };
        let (mut client, present) = connect(&two, &clean).await;
        assert!(!present);
        client.subscribe("#").await;
        client.disconnect().await;
        store.clock.advance(LEASE);
        let three = store.start("three", 3).await;
        let (mut client, _) = connect(&three, &login(5, "worker")).await;
        assert!(is_stored(&three, "new").await);
        assert_eq!(client.next().await.1, "new");
    }
}

/// Neither the process nor the client that showed the credential is there any more.
#[tokio::test]
async fn a_right_that_is_revoked_ends_a_session_from_before_a_restart() {
    let mut processes = Processes::start(in_memory()).await;
    let (mut client, _) = processes.connect(&login(4, "worker")).await;
    client.subscribe("#").await;
    client.disconnect().await;
    processes.publish("before").await;
    for _ in 0..2 {
        processes.restart().await;
        processes.harness.broker.check_credentials().await;
    }
    let owners = processes.shared.store.list(&key("mqtt/owner/"), None, 10).await.unwrap();
    assert!(!String::from_utf8_lossy(&owners[0].value).contains("account"), "the credential is readable");
    processes.harness.authenticator.revoke("app-one", "account.read");
    processes.harness.broker.check_credentials().await;
    processes.publish("meanwhile").await;
    processes.harness.authenticator.grant("app-one", "account.read", &[READ]);
    let (mut client, present) = processes.connect(&login(4, "worker")).await;
    assert!(!present);
    client.subscribe("#").await;
    processes.publish("after").await;
    assert_eq!(client.next().await.1, "after");
}

/// What cannot be checked is not delivered.
#[tokio::test]
async fn a_session_whose_credential_is_damaged_ends_at_the_restart() {
    let mut processes = Processes::start(in_memory()).await;
    let (mut client, _) = processes.connect(&login(4, "worker")).await;
    client.subscribe("#").await;
    client.disconnect().await;
    processes.publish("before").await;
    let store = processes.shared.store.clone();
    let owner = store.list(&key("mqtt/owner/"), None, 10).await.unwrap().remove(0);
    let mut damaged = owner.value.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(store.commit(Batch::new().put(owner.key, damaged)).await.unwrap(), Commit::Done);
    processes.restart().await;
    let (_, present) = processes.connect(&login(4, "worker")).await;
    assert!(!present);
}
