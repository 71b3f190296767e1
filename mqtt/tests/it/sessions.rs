//! Sessions: who may resume them, and how they end.

use std::time::Duration;

use mqtt5_protocol::QoS;

use crate::harness::{
    Harness, READ, WRITE, publish_up,
    raw_client::{Login, RawClient},
    settings,
};

#[tokio::test]
async fn clients_of_two_applications_may_use_the_same_client_identifier() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    for version in [4, 5] {
        let login = |app_id| Login::new(version, app_id, "account.read").with_client_id("same/name");
        let mut one = RawClient::connect(harness.broker.address(), &login("app-one")).await;
        let mut two = RawClient::connect(harness.broker.address(), &login("app-two")).await;
        one.subscribe("#").await;
        two.subscribe("#").await;
        publish_up(&mut handler, "app-one", "to one").await;
        publish_up(&mut handler, "app-two", "to two").await;
        assert_eq!((one.next().await.1, two.next().await.1), ("to one".to_owned(), "to two".to_owned()));
    }
}

// Conformance: A client that connects again takes its session over, nobody else does
#[tokio::test]
async fn resumes_and_takes_over_a_session_only_with_the_same_credential() {
    let harness = Harness::start().await;
    let address = harness.broker.address();
    let login = |key| Login::new(5, "app-one", key).with_client_id("worker").persistent();
    let (mut first, _, present) = RawClient::try_connect(address, &login("account.read")).await;
    assert!(!present);
    first.subscribe("#").await;

    let (mut other, _, present) = RawClient::try_connect(address, &login("account.both")).await;
    assert!(!present, "another credential resumed the session");
    first.ping().await;

    let (mut second, _, present) = RawClient::try_connect(address, &login("account.read")).await;
    assert!(present);
    assert_eq!(first.closed().await, Some(0x8e));
    other.ping().await;

    other.publish("app-one/devices/dev/down", "resumed").await;
    assert_eq!(second.next().await.1, "resumed");
}

#[tokio::test]
async fn changed_rights_start_a_new_session() {
    for version in [4, 5] {
        let harness = Harness::start().await;
        let address = harness.broker.address();
        let login = Login::new(version, "app-one", "account.both").with_client_id("worker").persistent();
        let mut client = RawClient::connect(address, &login).await;
        client.subscribe("#").await;
        client.disconnect().await;
        for rights in [&[WRITE][..], &[READ], &[READ, WRITE]] {
            harness.authenticator.grant("app-one", "account.both", rights);
            // Whatever session other rights started, it goes when the change is noticed.
            harness.broker.check_credentials().await;
            let (client, status, present) = RawClient::try_connect(address, &login).await;
            assert_eq!((status, present), (0, false), "MQTT {version}, {rights:?}");
            client.disconnect().await;
        }
    }
}

/// A client that is away loses its right for a while: what came before and meanwhile is not for it.
// Conformance: A deleted application, a revoked or changed right
#[tokio::test]
async fn a_revoked_client_loses_its_session_also_while_it_is_away() {
    let harness = Harness::start().await;
    let login = Login::new(5, "app-one", "account.read").with_client_id("worker").persistent();
    let mut client = RawClient::connect(harness.broker.address(), &login).await;
    client.subscribe("#").await;
    client.disconnect().await;
    let mut handler = harness.handler().await;
    publish_up(&mut handler, "app-one", "before").await;
    harness.authenticator.revoke("app-one", "account.read");
    harness.broker.check_credentials().await;
    publish_up(&mut handler, "app-one", "meanwhile").await;
    harness.authenticator.grant("app-one", "account.read", &[READ]);
    let (mut client, code, present) = RawClient::try_connect(harness.broker.address(), &login).await;
    assert_eq!((code, present), (0, false));
    client.subscribe("#").await;
    publish_up(&mut handler, "app-one", "after").await;
    assert_eq!(client.next().await.1, "after");
}

/// A credential that cannot be checked for a while costs no client its session.
// Conformance: A credential that cannot be checked for a while: its sessions stay
#[tokio::test]
async fn a_client_that_is_away_keeps_its_session_while_its_credential_cannot_be_checked() {
    let harness = Harness::start().await;
    let login = Login::new(5, "app-one", "account.read").with_client_id("worker").persistent();
    let mut client = RawClient::connect(harness.broker.address(), &login).await;
    client.subscribe("#").await;
    client.disconnect().await;
    harness.authenticator.set_unavailable(true);
    harness.broker.check_credentials().await;
    publish_up(&mut harness.handler().await, "app-one", "meanwhile").await;
    harness.authenticator.set_unavailable(false);
    let (mut client, _, present) = RawClient::try_connect(harness.broker.address(), &login).await;
    assert!(present);
    assert_eq!(client.next().await.1, "meanwhile");
}

#[tokio::test]
async fn queues_messages_for_a_persistent_session() {
    let harness = Harness::start().await;
    let login = Login::new(4, "app-one", "account.both").with_client_id("worker").persistent();
    let mut client = RawClient::connect(harness.broker.address(), &login).await;
    client.subscribe("#").await;
    client.disconnect().await;
    let mut sender = RawClient::connect(harness.broker.address(), &Login::new(4, "app-one", "account.write")).await;
    sender.publish("app-one/devices/dev/down", "waited").await;
    let (mut client, _, present) = RawClient::try_connect(harness.broker.address(), &login).await;
    assert!(present);
    assert_eq!(client.next().await.1, "waited");
}

#[tokio::test]
async fn a_revoked_credential_ends_its_sessions_for_good() {
    let harness = Harness::start().await;
    let address = harness.broker.address();
    let login = |version, app_id, name| Login::new(version, app_id, "account.both").with_client_id(name).persistent();
    let mut old = RawClient::connect(address, &login(4, "app-one", "old")).await;
    let mut new = RawClient::connect(address, &login(5, "app-one", "new")).await;
    let mut other = RawClient::connect(address, &login(5, "app-two", "new")).await;
    old.subscribe("#").await;

    harness.authenticator.revoke("app-one", "account.both");
    harness.broker.check_credentials().await;
    assert_eq!(old.closed().await, None);
    assert_eq!(new.closed().await, Some(0x87));
    other.ping().await;

    // With its rights back, the client may reconnect, but nothing of the old session is left.
    harness.authenticator.grant("app-one", "account.both", &[READ, WRITE]);
    for (version, name) in [(4, "old"), (5, "new")] {
        let (_, status, present) = RawClient::try_connect(address, &login(version, "app-one", name)).await;
        assert_eq!((status, present), (0, false), "{name}");
    }
}

#[tokio::test]
async fn discards_the_will_of_a_revoked_client() {
    let harness = Harness::start().await;
    let address = harness.broker.address();
    let mut observer = RawClient::connect(address, &Login::new(4, "app-one", "account.both")).await;
    observer.subscribe("#").await;
    for version in [4, 5] {
        let login = Login::new(version, "app-one", "account.write").with_will("app-one/devices/revoked/down");
        let mut revoked = RawClient::connect(address, &login).await;
        harness.authenticator.revoke("app-one", "account.write");
        harness.broker.check_credentials().await;
        revoked.closed().await;
        harness.authenticator.grant("app-one", "account.write", &[WRITE]);
    }
    observer.publish("app-one/devices/marker/down", "marker").await;
    assert_eq!(observer.next().await.1, "marker");
}

// Conformance: A deleted application, a revoked or changed right
#[tokio::test]
async fn disconnects_clients_whose_credentials_are_revoked_or_changed() {
    let harness = Harness::start().await;
    let address = harness.broker.address();
    let mut revoked = RawClient::connect(address, &Login::new(5, "app-one", "account.read")).await;
    let mut lessened = RawClient::connect(address, &Login::new(5, "app-one", "account.both")).await;
    let mut same = RawClient::connect(address, &Login::new(5, "app-one", "account.write")).await;
    let mut other = RawClient::connect(address, &Login::new(5, "app-two", "account.read")).await;
    harness.authenticator.revoke("app-one", "account.read");
    harness.authenticator.grant("app-one", "account.both", &[READ]);
    harness.broker.check_credentials().await;
    assert_eq!((revoked.closed().await, lessened.closed().await), (Some(0x87), Some(0x87)));
    same.ping().await;
    other.ping().await;
}

#[tokio::test]
async fn checks_credentials_at_every_interval() {
    let harness = Harness::start_with(mqtt::BrokerSettings { check_interval_ms: 1, ..settings() }).await;
    let mut client = RawClient::connect(harness.broker.address(), &Login::new(5, "app-one", "account.read")).await;
    harness.authenticator.revoke("app-one", "account.read");
    assert_eq!(client.closed().await, Some(0x87));
}

// Conformance: A credential that cannot be checked for a while: its sessions stay
#[tokio::test]
async fn disconnects_a_client_whose_credential_cannot_be_confirmed_and_keeps_its_session() {
    for (version, told) in [(4, None), (5, Some(0x89))] {
        let harness = Harness::start().await;
        let address = harness.broker.address();
        let login = Login::new(version, "app-one", "account.read").with_client_id("worker").persistent();
        let mut client = RawClient::connect(address, &login).await;
        client.subscribe("#").await;
        harness.authenticator.set_unavailable(true);
        harness.broker.check_credentials().await;
        assert_eq!(client.closed().await, told);

        harness.authenticator.set_unavailable(false);
        let (mut client, code, present) = RawClient::try_connect(address, &login).await;
        assert!((code, present) == (0, true), "{code} {present}");
        publish_up(&mut harness.handler().await, "app-one", "still subscribed").await;
        assert_eq!(client.next().await.1, "still subscribed");
    }
}

#[tokio::test]
async fn delivers_what_a_client_sent_just_before_it_disconnected() {
    let harness = Harness::start().await;
    let address = harness.broker.address();
    let mut observer = RawClient::connect(address, &Login::new(4, "app-one", "account.read")).await;
    observer.subscribe("#").await;
    // It subscribes too, so that it leaves data unread.
    let mut hasty = RawClient::connect(address, &Login::new(4, "app-one", "account.both")).await;
    hasty.subscribe("#").await;
    for number in 0..50 {
        hasty.send_publish("app-one/devices/dev/down", &number.to_string(), QoS::AtMostOnce, false).await;
    }
    hasty.send(&[0xe0, 0]).await;
    drop(hasty);
    for number in 0..50 {
        assert_eq!(observer.next().await.1, number.to_string());
    }
}

#[tokio::test]
async fn disconnects_clients_when_the_broker_shuts_down() {
    let harness = Harness::start().await;
    let address = harness.broker.address();
    let mut client = RawClient::connect(address, &Login::new(5, "app-one", "account.read")).await;
    let mut silent = RawClient::open(address, 4).await;
    harness.broker.shutdown().await;
    assert_eq!(client.closed().await, Some(0x8b));
    assert_eq!(silent.closed().await, None);
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "the broker still listens");
}

#[tokio::test]
async fn a_session_expires_after_an_hour_without_its_client() {
    let harness = Harness::start().await;
    let address = harness.broker.address();
    for (version, name) in [(4, "old"), (5, "new")] {
        let login = Login::new(version, "app-one", "account.read").with_client_id(name).persistent();
        for (away, is_left) in
            [(Duration::ZERO, false), (Duration::from_secs(599), true), (Duration::from_secs(3601), false)]
        {
            harness.clock.advance(away);
            let (client, _, present) = RawClient::try_connect(address, &login).await;
            assert_eq!(present, is_left, "MQTT {version} after {away:?}");
            client.disconnect().await;
        }
    }
}
