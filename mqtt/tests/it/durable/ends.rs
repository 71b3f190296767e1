//! Stored sessions and messages are deleted when they must be, and not before.

use std::time::Duration;

use store::{Batch, Commit};

use super::{LEASE, Processes, connect, in_memory, is_stored, key, logged, login, shared_stores};
use crate::harness::{READ, eventually, raw_client::Login};

// Conformance: What is stored of a session goes with it, and every record expires
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

/// Every record of a session that is never served again goes, also if it was connected.
// Conformance: What is stored of a session goes with it, and every record expires
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

// Conformance: What is stored of a session goes with it, and every record expires
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
// Conformance: What is stored of a session goes with it, and every record expires
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
// Conformance: A deleted application, a revoked or changed right
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

/// A session whose rights cannot be checked must not deliver.
// Conformance: A deleted application, a revoked or changed right
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
