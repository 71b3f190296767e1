//! Sessions that several processes share: which of them has a session, and when another one takes it over.

use std::time::Duration;

use super::{LEASE, Shared, connect, in_memory, is_stored, key, logged, login, shared_stores};
use crate::harness::{
    Harness, eventually,
    gated_store::GatedStore,
    publish_up,
    raw_client::{Login, RawClient},
};

// Conformance: A persistent session follows its client from one handler to another
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

/// Handlers with one id behind one address are restarted one after the other.
// Conformance: A handler that has lost a session without knowing harms it no more
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
// Conformance: A persistent session follows its client from one handler to another
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
        // Two may say no while it takes over, and drops uplinks for a session of which it does not know.
        owned_by_two(&store).await;
        let three = store.start("two", 3).await;
        stored_for_its_session(&store, &two, "2").await;
        let (mut client, present) = connect(&three, &login(5, "worker")).await;
        assert!(present);
        assert_eq!((client.next().await.1, client.next().await.1), ("1".to_owned(), "2".to_owned()));
    }
}

/// Between claiming the sessions and reading them, the store goes away for a moment.
// Conformance: A persistent session follows its client from one handler to another
#[tokio::test]
async fn sessions_that_are_claimed_and_not_read_are_served_when_the_store_is_back() {
    for unreadable in ["mqtt/session/", "mqtt/log/"] {
        let (stores, _redis) = shared_stores().await;
        for store in stores {
            let (access_one, access_two) = (GatedStore::new(&store.store), GatedStore::new(&store.store));
            let one = store.start_on(access_one.clone(), "one", 1).await;
            let two = store.start_on(access_two.clone(), "two", 2).await;
            leave_a_session(&one).await;
            access_two.set_unreadable(Some(key(unreadable)));
            access_one.cut(true);
            store.clock.advance(LEASE);
            owned_by_two(&store).await;
            access_two.set_unreadable(None);
            serves_its_session(&store, &two).await;
        }
    }
}

/// The client goes on to a process that cannot read what it has claimed, and does not come back for a while.
// Conformance: A persistent session follows its client from one handler to another
#[tokio::test]
async fn a_session_that_its_client_was_refused_is_served_by_the_process_that_claimed_it() {
    for unreadable in ["mqtt/session/", "mqtt/log/"] {
        let (stores, _redis) = shared_stores().await;
        for store in stores {
            let access = GatedStore::new(&store.store);
            let (one, two) = (store.start("one", 1).await, store.start_on(access.clone(), "two", 2).await);
            leave_a_session(&one).await;
            access.set_unreadable(Some(key(unreadable)));
            let (_, code, _) = RawClient::try_connect(two.broker.address(), &login(5, "worker")).await;
            assert_eq!(code, 0x88);
            owned_by_two(&store).await;
            access.set_unreadable(None);
            serves_its_session(&store, &two).await;
        }
    }
}

/// A client subscribes, leaves, and misses a message.
async fn leave_a_session(harness: &Harness) {
    let (mut client, _) = connect(harness, &login(5, "worker")).await;
    client.subscribe("#").await;
    client.disconnect().await;
    assert!(is_stored(harness, "1").await);
}

/// The client gets what it missed, and what came for it at this process before it returned.
async fn serves_its_session(store: &Shared, harness: &Harness) {
    stored_for_its_session(store, harness, "2").await;
    let (mut client, present) = connect(harness, &login(5, "worker")).await;
    assert!(present);
    assert_eq!((client.next().await.1, client.next().await.1), ("1".to_owned(), "2".to_owned()));
}

/// Waits until the second process has claimed the only session.
async fn owned_by_two(store: &Shared) {
    eventually("the adoption", async {
        while owner_of_only_session(store).await.split('-').next() != Some("0000000000000002") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

/// Publishes until a message is stored for the session besides the first: before, nobody knows of a subscriber.
async fn stored_for_its_session(store: &Shared, harness: &Harness, body: &str) {
    eventually("uplinks for the session", async {
        loop {
            assert!(is_stored(harness, body).await);
            if logged(store).await > 1 {
                break;
            }
        }
    })
    .await;
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

/// A session that one process removes may belong to another by now.
// Conformance: A handler that has lost a session without knowing harms it no more
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

/// A client that wants a clean session gets one wherever it connects, and the old one is gone everywhere.
// Conformance: A handler that has lost a session without knowing harms it no more
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
