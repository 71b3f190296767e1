//! Shared limits of the applications of one owner, which other owners do not notice.

use std::pin::pin;

use mqtt::{BrokerSettings, Publication};
use mqtt5_protocol::{QoS, packet::publish::PublishPacket};
use server::ledger::Limits;
use types::AppId;

use crate::harness::{
    Harness, eventually,
    raw_client::{Login, RawClient},
    settings,
};

/// Two applications of one user, and one of another.
const OWNERS: [(&str, &str); 3] = [("app-one", "alice"), ("app-two", "alice"), ("app-three", "bob")];

const PLENTY: Limits = Limits { total: 1 << 30, owner_max: 1 << 30, owner_min: 0 };

fn login(version: u8, app_id: &'static str) -> Login {
    Login::new(version, app_id, "account.both")
}

fn publications(app_id: &str, count: usize, bytes: usize) -> (AppId, impl Iterator<Item = Publication> + use<>) {
    let topic = format!("{app_id}/devices/dev/up");
    let body = move |number: usize| [format!("{number:08}").into_bytes(), vec![b'x'; bytes.saturating_sub(8)]].concat();
    let publication = move |number| Publication { topic: topic.clone(), payload: body(number).into() };
    (app_id.parse().unwrap(), (0..count).map(publication))
}

/// A client of this name that has subscribed to everything, and is away.
async fn leave(harness: &Harness, app_id: &'static str, name: &'static str) {
    let login = login(4, app_id).with_client_id(name).persistent();
    let mut client = RawClient::connect(harness.broker.address(), &login).await;
    client.subscribe("#").await;
    client.disconnect().await;
}

#[tokio::test]
async fn no_owner_can_have_all_connections() {
    let settings = BrokerSettings { connections_max: 40, ..settings() };
    let harness = Harness::start_owned(settings, &OWNERS, PLENTY).await;
    let address = harness.broker.address();
    let mut clients = Vec::new();
    for app_id in ["app-one", "app-two"].iter().cycle() {
        let (client, code, _) = RawClient::try_connect(address, &login(4, app_id)).await;
        if code > 0 {
            assert_eq!(code, 3);
            break;
        }
        clients.push(client);
    }
    assert!((20..30).contains(&clients.len()), "{}", clients.len());
    let (code, text) = RawClient::refused(address, &login(5, "app-one")).await;
    assert!(code == 0x97 && text.contains("budget of MQTT connections"), "{code:#x} {text}");
    let mut other = RawClient::connect(address, &login(5, "app-three")).await;
    other.ping().await;
    // A client that has lost its connection is not refused, and one that leaves makes room.
    for left in clients.split_off(clients.len() - 4) {
        left.disconnect().await;
    }
    let known = login(5, "app-two").with_client_id("known");
    // The broker counts the one that left until it has closed it.
    let accepted = async {
        loop {
            let (client, code, _) = RawClient::try_connect(address, &known).await;
            if code == 0 {
                return client;
            }
        }
    };
    let _lost = eventually("the place of the one that left", accepted).await;
    RawClient::connect(address, &known).await.ping().await;
}

/// Whoever names the application of somebody else waits behind the others of its own address.
#[tokio::test]
async fn the_check_of_a_credential_is_its_address_s() {
    let harness = Harness::start_owned(settings(), &OWNERS, PLENTY).await;
    let address = harness.broker.address();
    let (_, code, _) = RawClient::try_connect(address, &Login::new(4, "app-one", "account.wrong")).await;
    assert_ne!(code, 0);
    assert_eq!(harness.authenticator.addresses(), [address.ip()]);
}

#[tokio::test]
async fn silent_clients_of_one_address_do_not_take_all_connections() {
    let settings = BrokerSettings { connections_max: 40, ..settings() };
    let harness = Harness::start_owned(settings, &OWNERS, PLENTY).await;
    let address = harness.broker.address();
    // They are known by their address until they show a credential, and then no longer.
    let mut clients = Vec::new();
    for _ in 0..20 {
        clients.push(RawClient::connect(address, &login(4, "app-three")).await);
    }
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(RawClient::open(address, 4).await);
    }
    // Those that are too many are closed at once.
    assert_eq!(silent.pop().unwrap().closed().await, None);
    for client in &mut clients {
        client.ping().await;
    }
}

#[tokio::test]
async fn the_name_of_a_shared_subscription_counts_as_a_part_of_its_filter() {
    let harness = Harness::start().await;
    for (version, refused) in [(4, 0x80), (5, 0x97)] {
        let mut client = RawClient::connect(harness.broker.address(), &login(version, "app-one")).await;
        for (length, expected) in [(240, 1), (241, refused), (60_000, refused)] {
            let filter = format!("$share/{}/app-one/#", "x".repeat(length - 1));
            assert_eq!(filter.len(), length + 16);
            assert_eq!(client.subscribe(&filter).await, expected, "{length}");
        }
        client.disconnect().await;
    }
}

#[tokio::test]
async fn sessions_and_subscriptions_are_charged_to_their_owner() {
    let limits = Limits { total: 1 << 20, owner_max: 64 << 10, owner_min: 0 };
    let harness = Harness::start_owned(settings(), &OWNERS, limits).await;
    let address = harness.broker.address();
    for (version, refused) in [(4, 0x80), (5, 0x97)] {
        let mut clients = vec![RawClient::connect(address, &login(version, "app-one")).await];
        let mut codes = Vec::new();
        for number in 0..20 {
            codes.push(clients[0].subscribe(&format!("app-one/devices/{number}/events/a/b/c/d")).await);
        }
        assert!(codes.contains(&1) && codes.last() == Some(&refused), "{codes:?}");
        // The sessions of all applications of the owner count.
        loop {
            let (client, code, _) = RawClient::try_connect(address, &login(version, "app-two")).await;
            if code > 0 {
                assert_eq!(code, if version == 4 { 3 } else { 0x97 });
                break;
            }
            clients.push(client);
        }
        assert!(clients.len() < 40);
        let mut other = RawClient::connect(address, &login(version, "app-three")).await;
        assert_eq!(other.subscribe("#").await, 1);
        // What they had is free when they are gone.
        for client in clients {
            client.disconnect().await;
        }
    }
}

#[tokio::test]
async fn an_owner_with_too_many_messages_loses_the_oldest_and_no_other_does() {
    let limits = Limits { total: 4 << 20, owner_max: 1 << 20, owner_min: 0 };
    let harness = Harness::start_owned(settings(), &OWNERS, limits).await;
    for app_id in ["app-one", "app-two", "app-three"] {
        leave(&harness, app_id, "away").await;
    }
    for (app_id, count) in [("app-three", 9), ("app-one", 20), ("app-two", 1)] {
        for _ in 0..count {
            let (app_id, messages) = publications(app_id, 1, 100_000);
            harness.router.publish(&app_id, messages).stored().await.unwrap();
        }
    }
    let mut kept = Vec::new();
    for app_id in ["app-one", "app-two", "app-three"] {
        kept.push(harness.application_metric("queued_messages", app_id).unwrap_or_default());
    }
    assert!((6..10).contains(&kept[0]), "{kept:?}");
    assert_eq!(kept[1..], [1, 9]);
}

/// All on one thread: what is not done in pieces would be done before anything else.
#[tokio::test]
async fn a_publication_to_many_sessions_lets_others_go_between() {
    let harness = Harness::start_owned(settings(), &OWNERS, PLENTY).await;
    for number in 0..100 {
        leave(&harness, "app-one", Box::leak(number.to_string().into_boxed_str())).await;
    }
    let mut neighbour = RawClient::connect(harness.broker.address(), &login(4, "app-three")).await;
    neighbour.subscribe("#").await;
    let (app_id, many) = publications("app-one", 1000, 8);
    let published = harness.router.publish(&app_id, many);
    let (other_id, one) = publications("app-three", 1, 8);
    harness.router.publish(&other_id, one).stored().await.unwrap();
    let mut published = pin!(published.stored());
    tokio::select! {
        biased;
        _ = &mut published => panic!("the neighbour had to wait"),
        (_, body) = neighbour.next() => assert_eq!(body, "00000000"),
    }
    // What is published in the meantime comes after it.
    let last = Publication { topic: "app-one/devices/dev/up".to_owned(), payload: "last".into() };
    let last = harness.router.publish(&app_id, [last]);
    published.await.unwrap();
    last.stored().await.unwrap();
    let login = login(4, "app-one").with_client_id("7").persistent();
    let mut client = RawClient::connect(harness.broker.address(), &login).await;
    let mut next = 1;
    loop {
        let (topic, body) = client.next().await;
        match body.as_str() {
            "last" => break,
            _ if topic == "app-one/events/dropped" => {}
            body => {
                // The first was dropped for the last.
                assert_eq!(body, format!("{next:08}"));
                next += 1;
            }
        }
    }
    assert_eq!(next, 1000);
}

#[tokio::test]
async fn keeps_an_alias_only_for_a_topic_on_which_its_client_may_publish() {
    let harness = Harness::start().await;
    let address = harness.broker.address();
    let mut observer = RawClient::connect(address, &login(4, "app-one")).await;
    observer.subscribe("#").await;
    let mut client = RawClient::connect(address, &login(5, "app-one")).await;
    let long = format!("app-one/devices/{}/down", "x".repeat(60_000));
    for topic in [&long, "", "app-one/devices/dev/down", "", &long, ""] {
        let mut packet = PublishPacket::new(topic.to_owned(), "{}", QoS::AtLeastOnce).with_packet_id(9);
        packet.protocol_version = 5;
        packet.properties.set_topic_alias(16);
        client.send_packet(&packet).await;
    }
    let not_authorized = |body: &[u8]| body.get(2) == Some(&0x87);
    let mut refused = Vec::new();
    for _ in 0..6 {
        refused.push(not_authorized(&client.wait_for(0x40).await));
    }
    assert_eq!(refused, [true, true, false, false, true, true]);
    // An event names each topic that came, but no topic that only an alias stood for.
    for is_error in [true, false, false, true] {
        assert_eq!(observer.next().await.0 == "app-one/events/down/errors", is_error);
    }
    client.publish("app-one/devices/dev/down", "last").await;
    assert_eq!(observer.next().await.1, "last");
}
