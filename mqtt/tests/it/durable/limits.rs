//! Limits of the storage for sessions, and who is refused above them.

use mqtt::Publication;
use serde_json::json;
use store::{Batch, Commit, Key, Tag};

use super::{Processes, Shared, in_memory, key, login, stores};
use crate::harness::raw_client::{Login, RawClient};

// Conformance: Persistent sessions keep messages while the client is away
// Conformance: The oldest messages of a full queue are dropped, counted
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
    // How many were dropped is saved a little later than that they were.
    while dropped_in(&processes.shared).await < 100 {
        tokio::task::yield_now().await;
    }
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

/// Returns the number of dropped messages that the stored sessions count.
async fn dropped_in(shared: &Shared) -> u64 {
    let sessions = shared.store.list(&key("mqtt/session/"), None, 10).await.unwrap();
    let records = sessions.iter().map(|session| serde_json::from_slice(&session.value).unwrap());
    records.map(|record: serde_json::Value| record["dropped"].as_u64().unwrap_or_default()).sum()
}

/// Stores more sessions than allowed, as earlier versions did, each with a subscription to everything.
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

// Conformance: Sessions of an application are bounded, stored ones too
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
// Conformance: Sessions of an application are bounded, stored ones too
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

// Conformance: Sessions of an application are bounded, stored ones too
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
// Conformance: While the store is away, nothing is accepted for stored sessions
#[tokio::test]
async fn refuses_clients_while_the_store_does_not_answer() {
    let processes = Processes::start(in_memory()).await;
    processes.access.hang();
    let address = processes.harness.broker.address();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let refused = names.map(|name| async move { RawClient::try_connect(address, &login(4, name)).await.1 });
    assert_eq!(futures::future::join_all(refused).await, [3; 8]);
}
