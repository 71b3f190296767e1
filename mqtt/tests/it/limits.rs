//! Limits on clients, and that a client that exceeds them affects no other.

mod owners;
mod violations;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mqtt::BrokerSettings;
use mqtt5_protocol::{QoS, packet::publish::PublishPacket};
use server::rate_limit::RateLimit;
use tokio::task::JoinSet;
use types::CREDENTIAL_BYTES_MAX;

use crate::harness::{
    Harness, READ, eventually,
    raw_client::{Login, RawClient},
    settings,
};

// Conformance: Too large a packet: 0x95; the maximum is announced
#[tokio::test]
async fn disconnects_a_client_that_sends_too_large_a_packet() {
    let harness = Harness::start().await;
    let address = harness.broker.address();
    let mut other = RawClient::connect(address, &Login::new(4, "app-one", "account.both")).await;
    let fits = "x".repeat(60_000);
    let too_large = "x".repeat(70_000);
    for (version, reason) in [(4, None), (5, Some(0x95))] {
        let mut client = RawClient::connect(address, &Login::new(version, "app-one", "account.both")).await;
        client.publish("app-one/devices/dev/down", &fits).await;
        client.send_publish("app-one/devices/dev/down", &too_large, QoS::AtMostOnce, false).await;
        assert_eq!(client.closed().await, reason);
        other.ping().await;
    }
}

/// They take far more memory than payloads do.
// Conformance: Thousands of properties, long client identifiers and topics: refused
#[tokio::test]
async fn disconnects_a_client_that_sends_too_many_properties() {
    let harness = Harness::start().await;
    for (count, expected) in [(100, None), (1000, Some(0x95))] {
        let login = Login::new(5, "app-one", "account.both");
        let mut client = RawClient::connect(harness.broker.address(), &login).await;
        let mut packet = PublishPacket::new("app-one/devices/dev/down".to_owned(), "{}", QoS::AtMostOnce);
        packet.protocol_version = 5;
        for _ in 0..count {
            packet.properties.add_user_property(String::new(), String::new());
        }
        client.send_packet(&packet).await;
        match expected {
            None => client.ping().await,
            reason => assert_eq!(client.closed().await, reason),
        }
    }
}

// Conformance: Many connections without credentials: limited, and others do not notice
#[tokio::test]
async fn silent_clients_do_not_delay_others() {
    let harness = Harness::start().await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(RawClient::open(harness.broker.address(), 4).await);
    }
    let mut client = RawClient::connect(harness.broker.address(), &Login::new(4, "app-one", "account.read")).await;
    client.ping().await;
}

/// Each message goes through while clients are being refused.
// Conformance: Many connections without credentials: limited, and others do not notice
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_clients_without_credentials_takes_nothing_from_others() {
    // All come from one address.
    let connects_per_address = RateLimit::new(1_000_000, 3_600_000);
    let harness = Harness::start_with(BrokerSettings { connects_per_address, ..settings() }).await;
    let address = harness.broker.address();
    let login = Login::new(5, "app-one", "account.both").with_client_id("worker");
    let mut client = RawClient::connect(address, &login).await;
    client.subscribe("#").await;
    let refused = Arc::new(AtomicUsize::new(0));
    let mut flood = JoinSet::new();
    for number in 0..32 {
        let (refused, password) = (refused.clone(), (number % 2 == 0).then_some("account.wrong"));
        let login = Login { user: password.and(Some("app-one")), password, ..Login::new(4, "app-one", "") };
        flood.spawn(async move {
            loop {
                let (_, code, _) = RawClient::try_connect(address, &login).await;
                // After too many with one credential, they are refused without a look at it.
                assert!([3, 4].contains(&code), "{code}");
                refused.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    let mut before = 0;
    for number in 0..200 {
        eventually("the flood", async {
            while refused.load(Ordering::SeqCst) == before {
                tokio::task::yield_now().await;
            }
        })
        .await;
        before = refused.load(Ordering::SeqCst);
        client.publish("app-one/devices/dev/down", &number.to_string()).await;
        assert_eq!(client.next().await.1, number.to_string());
    }
    assert!(flood.try_join_next().is_none(), "the flood went on until the end");
    // Somebody else who is allowed to is not kept out either.
    RawClient::connect(address, &login.with_client_id("other")).await.ping().await;
}

#[tokio::test]
async fn limits_the_connections_of_an_application() {
    let harness = Harness::start_with(BrokerSettings { connections_per_application_max: 2, ..settings() }).await;
    let address = harness.broker.address();
    let login = |version, app_id| Login::new(version, app_id, "account.read");
    let first = RawClient::connect(address, &login(4, "app-one")).await;
    let mut second = RawClient::connect(address, &login(4, "app-one")).await;
    for (version, expected) in [(4, 3), (5, 0x97)] {
        let (_, status, _) = RawClient::try_connect(address, &login(version, "app-one")).await;
        assert_eq!(status, expected);
    }
    RawClient::connect(address, &login(4, "app-two")).await;
    second.ping().await;

    first.disconnect().await;
    RawClient::connect(address, &login(4, "app-one")).await;
}

/// After its network has failed, a client comes back before the broker notices that it was gone.
// Conformance: A client takes its session over although its application has all its connections
#[tokio::test]
async fn a_client_takes_its_session_over_although_its_application_has_all_its_connections() {
    let harness = Harness::start_with(BrokerSettings { connections_per_application_max: 2, ..settings() }).await;
    let address = harness.broker.address();
    for (version, expected) in [(4, None), (5, Some(0x8e))] {
        let login = |name| Login::new(version, "app-one", "account.read").with_client_id(name);
        let mut lost = RawClient::connect(address, &login("lost")).await;
        let mut other = RawClient::connect(address, &login("other")).await;
        let mut back = RawClient::connect(address, &login("lost")).await;
        assert_eq!(lost.closed().await, expected);
        let (_, status, _) = RawClient::try_connect(address, &login("new")).await;
        assert_eq!(status, if version == 4 { 3 } else { 0x97 });
        other.ping().await;
        back.ping().await;
        other.disconnect().await;
        back.disconnect().await;
    }
}

// Conformance: Many connections without credentials: limited, and others do not notice
#[tokio::test]
async fn drops_connections_over_the_limit() {
    let harness = Harness::start_with(BrokerSettings { connections_max: 1, ..settings() }).await;
    let mut client = RawClient::connect(harness.broker.address(), &Login::new(4, "app-one", "account.read")).await;
    assert_eq!(RawClient::open(harness.broker.address(), 4).await.closed().await, None);
    client.ping().await;
}

#[tokio::test]
async fn refuses_a_client_that_connects_too_often_with_one_credential() {
    let limit = RateLimit::new(3, 3600);
    let harness = Harness::start_with(BrokerSettings { connects_per_credential: limit, ..settings() }).await;
    let address = harness.broker.address();
    for version in [4, 5, 4] {
        RawClient::connect(address, &Login::new(version, "app-one", "account.read")).await.disconnect().await;
    }
    for (version, expected) in [(4, 3), (5, 0x9f)] {
        let (_, status, _) = RawClient::try_connect(address, &Login::new(version, "app-one", "account.read")).await;
        assert_eq!(status, expected);
    }
    // Other credentials are not affected, and invalid ones count too.
    RawClient::connect(address, &Login::new(4, "app-one", "account.write")).await;
    RawClient::connect(address, &Login::new(4, "app-two", "account.read")).await;
    for expected in [4, 4, 4, 3] {
        assert_eq!(RawClient::try_connect(address, &Login::new(4, "app-one", "account.wrong")).await.1, expected);
    }
    harness.clock.advance(Duration::from_secs(1));
    RawClient::connect(address, &Login::new(4, "app-one", "account.read")).await;
}

// Conformance: Many connections without credentials: limited, and others do not notice
#[tokio::test]
async fn refuses_an_address_that_connects_too_often() {
    let limit = RateLimit::new(2, 3600);
    let harness = Harness::start_with(BrokerSettings { connects_per_address: limit, ..settings() }).await;
    let address = harness.broker.address();
    // Any number of clients may be behind one address, as long as they have a valid credential.
    for _ in 0..5 {
        RawClient::connect(address, &Login::new(4, "app-one", "account.read")).await;
    }
    for _ in 0..2 {
        RawClient::try_connect(address, &Login::new(4, "app-one", "account.wrong")).await;
    }
    assert_eq!(RawClient::try_connect(address, &Login::new(5, "app-two", "account.read")).await.1, 0x9f);
    harness.clock.advance(Duration::from_secs(1));
    RawClient::connect(address, &Login::new(5, "app-two", "account.read")).await;
}

#[tokio::test]
async fn refuses_a_password_that_is_too_long_without_checking_it() {
    let harness = Harness::start().await;
    let longest = "x".repeat(CREDENTIAL_BYTES_MAX);
    let too_long = format!("{longest}x");
    for password in [&longest, &too_long] {
        harness.authenticator.grant("app-one", password, &[READ]);
    }
    let connect = async |password: &str| {
        let login = Login::new(4, "app-one", password.to_owned().leak());
        RawClient::try_connect(harness.broker.address(), &login).await.1
    };
    assert_eq!((connect(&longest).await, connect(&too_long).await), (0, 4));
}

#[tokio::test]
async fn limits_the_subscriptions_of_a_client() {
    let harness = Harness::start().await;
    let mut client = RawClient::connect(harness.broker.address(), &Login::new(5, "app-one", "account.read")).await;
    for number in 0..20 {
        assert_eq!(client.subscribe(&format!("app-one/devices/dev-{number}/up")).await, 1);
    }
    assert_eq!(client.subscribe("app-one/devices/one-more/up").await, 0x97);
    assert_eq!(client.subscribe("app-one/devices/dev-7/up").await, 1);
}

#[tokio::test]
async fn slows_down_a_client_that_publishes_too_fast_without_losing_messages() {
    let harness = Harness::start_with(BrokerSettings { publishes_per_second_max: 20, ..settings() }).await;
    let mut client = RawClient::connect(harness.broker.address(), &Login::new(4, "app-one", "account.both")).await;
    client.subscribe("#").await;
    for number in 0..30 {
        client.send_publish("app-one/devices/dev/down", &number.to_string(), QoS::AtMostOnce, false).await;
    }
    for number in 0..30 {
        assert_eq!(client.next().await.1, number.to_string());
    }
}

/// The broker has not read all packets of the client yet, because it publishes too fast.
// Conformance: A client takes its session over although its application has all its connections
#[tokio::test]
async fn a_client_that_left_before_it_connects_again_has_no_will() {
    let harness = Harness::start_with(BrokerSettings { publishes_per_second_max: 1, ..settings() }).await;
    let address = harness.broker.address();
    let mut observer = RawClient::connect(address, &Login::new(4, "app-one", "account.read")).await;
    observer.subscribe("#").await;
    for version in [4, 5] {
        let login = Login::new(version, "app-one", "account.both").with_client_id("hasty").persistent();
        let mut client = RawClient::connect(address, &login.clone().with_will("app-one/devices/dev/down")).await;
        for _ in 0..3 {
            client.send_publish("app-one/devices/dev/down", "sent", QoS::AtMostOnce, false).await;
        }
        client.send(&[0xe0, 0]).await;
        assert_eq!(observer.next().await.1, "sent");
        let mut again = RawClient::connect(address, &login).await;
        client.closed().await;
        again.publish("app-one/devices/dev/down", "again").await;
        let mut body = "sent".to_owned();
        while body == "sent" {
            body = observer.next().await.1;
        }
        assert_eq!(body, "again");
    }
}
