//! Queues from before a start, which are read only when somebody needs them.

use std::time::Duration;

use mqtt::Publication;

use super::{LEASE, Processes, connect, in_memory, is_stored, key, logged, login, shared_stores, stores};
use crate::harness::{
    Harness, READ, eventually,
    gated_store::GatedStore,
    raw_client::{Login, RawClient},
};

/// A client that subscribes to everything, and leaves.
async fn leave(processes: &Processes, name: &'static str) {
    let (mut client, _) = processes.connect(&login(4, name)).await;
    client.subscribe("#").await;
    client.disconnect().await;
}

async fn publish(processes: &Processes, numbers: std::ops::Range<usize>) {
    let publication =
        |number: usize| Publication { topic: "app-one/devices/dev/up".to_owned(), payload: number.to_string().into() };
    let published = processes.harness.router.publish(&"app-one".parse().unwrap(), numbers.map(publication));
    published.stored().await.unwrap();
}

/// The client comes back and gets exactly these.
async fn gets(processes: &Processes, name: &'static str, numbers: std::ops::Range<usize>) {
    let (mut client, present) = processes.connect(&login(4, name)).await;
    assert!(present);
    for number in numbers {
        assert_eq!(client.next().await.1, number.to_string());
    }
    client.ping().await;
    client.disconnect().await;
}

async fn until_dropped(processes: &Processes, messages: u64) {
    eventually("the drop", async {
        while processes.harness.application_metric("dropped_total", "app-one") != Some(messages) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// Waits for the number of dropped messages, which is saved a little later than the messages.
async fn until_saved_as_dropped(processes: &Processes, messages: u64) {
    let saved = async || {
        let sessions = processes.shared.store.list(&key("mqtt/session/"), None, 10).await.unwrap();
        serde_json::from_slice::<serde_json::Value>(&sessions[0].value).unwrap()["dropped"].as_u64()
    };
    eventually("the record of the session", async {
        while saved().await != Some(messages) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

// Conformance: A start reads the queues of absent clients when they are needed
#[tokio::test]
async fn a_start_reads_no_queue_until_a_client_comes_back() {
    let (stores, _redis) = stores().await;
    for store in stores {
        let mut processes = Processes::start(store).await;
        leave(&processes, "worker").await;
        leave(&processes, "sleeper").await;
        publish(&processes, 0..50).await;
        processes.shared.clock.advance(Duration::from_secs(1));
        processes.restart().await;
        assert_eq!(processes.access.messages_read(), 0);
        gets(&processes, "worker", 0..50).await;
        assert_eq!(processes.access.messages_read(), 50);
        processes.restart().await;
        gets(&processes, "sleeper", 0..50).await;
        gets(&processes, "worker", 0..0).await;
    }
}

#[tokio::test]
async fn a_queue_that_is_not_read_has_no_room_for_what_is_sent_again() {
    let (stores, _redis) = stores().await;
    for store in stores {
        let mut processes = Processes::start(store).await;
        leave(&processes, "worker").await;
        publish(&processes, 0..50).await;
        processes.restart().await;
        let app_id = "app-one".parse().unwrap();
        let spare = || processes.harness.router.spare(&app_id, ["app-one/devices/dev/up"].into_iter(), 1);
        assert_eq!((spare().sessions, spare().full.len()), (0, 1));
        eventually("it is read", async {
            while spare().messages != 50 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }
}

// Conformance: A start reads the queues of absent clients when they are needed
#[tokio::test]
async fn what_comes_for_an_absent_client_follows_its_queue_over_any_number_of_kills() {
    let (stores, _redis) = stores().await;
    for store in stores {
        let mut processes = Processes::start(store).await;
        leave(&processes, "worker").await;
        for start in [0, 5, 10] {
            publish(&processes, start..start + 5).await;
            processes.restart().await;
        }
        publish(&processes, 15..16).await;
        gets(&processes, "worker", 0..16).await;
    }
}

// Conformance: A start reads the queues of absent clients when they are needed
#[tokio::test]
async fn an_absent_client_keeps_the_newest_thousand_over_kills_and_is_told_what_was_dropped() {
    let mut processes = Processes::start(in_memory()).await;
    leave(&processes, "worker").await;
    publish(&processes, 0..900).await;
    processes.restart().await;
    publish(&processes, 900..1202).await;
    until_dropped(&processes, 202).await;
    until_saved_as_dropped(&processes, 202).await;
    processes.restart().await;
    let (mut client, _) = processes.connect(&login(4, "worker")).await;
    let (mut next, mut told) = (202, None);
    while next < 1202 || told.is_none() {
        let (topic, body) = client.next().await;
        if topic == "app-one/events/dropped" {
            told = Some(serde_json::from_str::<serde_json::Value>(&body).unwrap()["messages"].clone());
        } else {
            assert_eq!(body, next.to_string());
            next += 1;
        }
    }
    assert_eq!(told, Some(202.into()));
}

/// Accepted messages are stored, and no client is told that its queue is empty.
// Conformance: A start reads the queues of absent clients when they are needed
#[tokio::test]
async fn goes_on_accepting_messages_while_queues_cannot_be_read() {
    let mut processes = Processes::start(in_memory()).await;
    leave(&processes, "worker").await;
    publish(&processes, 0..3).await;
    processes.restart().await;
    processes.access.set_unreadable(Some(key("mqtt/log/")));
    assert!(is_stored(&processes.harness, "3").await);
    let (_, code, _) = RawClient::try_connect(processes.harness.broker.address(), &login(4, "worker")).await;
    assert_eq!(code, 3);
    processes.access.set_unreadable(None);
    gets(&processes, "worker", 0..4).await;
}

// Conformance: A start reads the queues of absent clients when they are needed
#[tokio::test]
async fn a_session_that_ends_before_its_queue_is_read_leaves_nothing_behind() {
    let mut processes = Processes::start(in_memory()).await;
    leave(&processes, "worker").await;
    publish(&processes, 0..30).await;
    processes.restart().await;
    // The first time the broker looks, it has the rights that it had.
    processes.harness.broker.check_credentials().await;
    processes.harness.authenticator.revoke("app-one", "account.read");
    processes.harness.broker.check_credentials().await;
    until_dropped(&processes, 30).await;
    eventually("the deletion", async {
        while logged(&processes.shared).await > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// A client that wants a new session does not get the old queue, and nothing of it stays.
#[tokio::test]
async fn a_clean_session_deletes_a_queue_that_was_not_read() {
    let mut processes = Processes::start(in_memory()).await;
    leave(&processes, "worker").await;
    leave(&processes, "sleeper").await;
    publish(&processes, 0..5).await;
    processes.restart().await;
    let clean = Login { clean: true, ..login(5, "worker") };
    let (mut client, present) = connect(&processes.harness, &clean).await;
    assert!(!present);
    client.subscribe("#").await;
    publish(&processes, 5..6).await;
    assert_eq!(client.next().await.1, "5");
    client.ping().await;
    gets(&processes, "sleeper", 0..6).await;
    eventually("the deletion", async {
        while logged(&processes.shared).await > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// Later messages have later numbers, although the clock says otherwise and nobody has read the earlier ones.
// Conformance: A start reads the queues of absent clients when they are needed
#[tokio::test]
async fn a_clock_that_is_set_back_changes_no_order() {
    let mut processes = Processes::start(in_memory()).await;
    leave(&processes, "worker").await;
    for number in 0..4 {
        publish(&processes, number..number + 1).await;
        processes.shared.clock.set_back(Duration::from_secs(600));
        processes.restart().await;
    }
    publish(&processes, 4..5).await;
    processes.restart().await;
    gets(&processes, "worker", 0..5).await;
}

/// Others wait for their turn, however many applications get messages after a start.
#[tokio::test]
async fn a_bounded_number_of_logs_is_read_at_the_same_time() {
    let mut processes = Processes::start(in_memory()).await;
    let app_ids: Vec<_> = (0..40).map(|number| &*Box::leak(format!("many-{number}").into_boxed_str())).collect();
    for app_id in &app_ids {
        processes.harness.authenticator.grant(app_id, "account.read", &[READ]);
        let login = Login::new(4, app_id, "account.read").with_client_id("worker").persistent();
        let (mut client, _) = processes.connect(&login).await;
        client.subscribe("#").await;
        client.disconnect().await;
    }
    processes.restart().await;
    let (router, access) = (&processes.harness.router, &processes.access);
    let held = access.hold_log_reads().await;
    for app_id in &app_ids {
        let publication = Publication { topic: format!("{app_id}/devices/dev/up"), payload: "x".into() };
        router.publish(&app_id.parse().unwrap(), [publication]).stored().await.unwrap();
    }
    drop(held);
    eventually("the reads", async {
        while access.log_reads() < app_ids.len() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(access.simultaneous_log_reads(), 16);
}

#[tokio::test]
async fn a_log_that_cannot_be_read_is_not_read_with_every_publication() {
    let mut processes = Processes::start(in_memory()).await;
    leave(&processes, "worker").await;
    publish(&processes, 0..3).await;
    processes.restart().await;
    processes.access.set_unreadable(Some(key("mqtt/log/")));
    for number in 3..103 {
        assert!(is_stored(&processes.harness, &number.to_string()).await);
    }
    // The pauses become longer, so a slow machine makes few more.
    let reads = processes.access.log_reads();
    assert!((1..=10).contains(&reads), "{reads}");
    processes.access.set_unreadable(None);
    // This does not need the client.
    eventually("the next attempt", async {
        while processes.access.messages_read() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    gets(&processes, "worker", 0..103).await;
}

/// Of the sessions that a start restores, a new one replaces one without messages.
#[tokio::test]
async fn a_session_with_messages_that_were_not_read_is_not_the_first_to_be_replaced() {
    for newcomer in [login(4, "one-more"), Login::new(4, "app-one", "account.read")] {
        let mut processes = Processes::start(in_memory()).await;
        leave(&processes, "worker").await;
        publish(&processes, 0..3).await;
        processes.shared.clock.advance(Duration::from_secs(1));
        for number in 1..200 {
            let (mut client, _) = processes.connect(&login(4, Box::leak(number.to_string().into_boxed_str()))).await;
            client.subscribe("app-one/events/#").await;
            client.disconnect().await;
        }
        processes.restart().await;
        let (mut client, _) = processes.connect(&newcomer).await;
        client.ping().await;
        gets(&processes, "worker", 0..3).await;
    }
}

/// A process has two sessions that it did not read. The client of one goes to another process, and that of the other
/// comes, before or after that, and acknowledges what both were to get.
#[tokio::test]
async fn a_queue_that_was_not_read_is_complete_where_its_client_goes() {
    for goes_first in [true, false] {
        let (stores, _redis) = shared_stores().await;
        for store in stores {
            let (access, access_three) = (GatedStore::new(&store.store), GatedStore::new(&store.store));
            let one = store.start_on(access.clone(), "one", 1).await;
            for name in ["goes", "stays"] {
                let (mut client, _) = connect(&one, &login(5, name)).await;
                client.subscribe("#").await;
                client.disconnect().await;
            }
            for body in ["1", "2", "3"] {
                assert!(is_stored(&one, body).await);
            }
            access.cut(true);
            store.clock.advance(LEASE);
            let two = store.start("two", 2).await;
            let three = store.start_on(access_three.clone(), "three", 3).await;
            if goes_first {
                misses_nothing(&three, "goes", false).await;
            }
            misses_nothing(&two, "stays", true).await;
            if !goes_first {
                misses_nothing(&three, "goes", false).await;
            }
            // Two finds out that one of them is gone, and deletes what nobody needs any more.
            assert!(!is_stored(&two, "4").await);
            assert!(is_stored(&two, "5").await);
            two.broker.shutdown().await;
            access_three.cut(true);
            store.clock.advance(LEASE);
            let four = store.start("four", 4).await;
            misses_nothing(&four, "goes", true).await;
        }
    }
}

/// The client comes back and gets everything.
async fn misses_nothing(harness: &Harness, name: &'static str, acknowledges: bool) {
    let (mut client, present) = connect(harness, &login(5, name)).await;
    assert!(present, "{name}");
    for body in ["1", "2", "3"] {
        let (_, packet_id, got) = client.next_unacknowledged().await;
        assert_eq!(got, body, "{name}");
        if acknowledges {
            client.acknowledge(packet_id).await;
        }
    }
    client.ping().await;
    client.disconnect().await;
}
