//! Sessions: whose they are, who takes them over, and how they end.

use mqtt5::QoS;

use crate::{
    peer::{Login, Peer},
    stage::{READS, Stage, WRITES, publish_up, settings},
};

#[tokio::test]
async fn clients_of_two_applications_may_have_the_same_name() {
    let stage = Stage::set().await;
    let output = stage.output().await;
    for version in [4, 5] {
        let login = |app_id| Login::new(version, app_id, "account.read").named("same/name");
        let mut one = Peer::connect(stage.broker.address(), &login("app-one")).await;
        let mut two = Peer::connect(stage.broker.address(), &login("app-two")).await;
        one.subscribe("#").await;
        two.subscribe("#").await;
        publish_up(&output, "app-one", "to one");
        publish_up(&output, "app-two", "to two");
        assert_eq!((one.next().await.1, two.next().await.1), ("to one".to_owned(), "to two".to_owned()));
    }
}

#[tokio::test]
async fn a_session_is_resumed_and_taken_over_with_the_same_credential_only() {
    let stage = Stage::set().await;
    let address = stage.broker.address();
    let login = |key| Login::new(5, "app-one", key).named("worker").lasting();
    let (mut first, _, present) = Peer::greet(address, &login("account.read")).await;
    assert!(!present);
    first.subscribe("#").await;

    let (mut other, _, present) = Peer::greet(address, &login("account.both")).await;
    assert!(!present, "another credential got the session");
    first.answers().await;

    let (mut second, _, present) = Peer::greet(address, &login("account.read")).await;
    assert!(present);
    assert_eq!(first.ended().await, Some(0x8e));
    other.answers().await;

    other.publish("app-one/devices/dev/down", "resumed").await;
    assert_eq!(second.next().await.1, "resumed");
}

#[tokio::test]
async fn whoever_returns_with_other_rights_begins_a_new_session() {
    for version in [4, 5] {
        let stage = Stage::set().await;
        let address = stage.broker.address();
        let login = Login::new(version, "app-one", "account.both").named("worker").lasting();
        let mut peer = Peer::connect(address, &login).await;
        peer.subscribe("#").await;
        peer.leave().await;
        for rights in [&[WRITES][..], &[READS], &[READS, WRITES]] {
            stage.keys.grant("app-one", "account.both", rights);
            let (peer, answered, present) = Peer::greet(address, &login).await;
            // With the first rights again, what was left under them is still there.
            assert_eq!((answered, present), (0, rights.len() == 2), "MQTT {version}, {rights:?}");
            peer.leave().await;
        }
    }
}

#[tokio::test]
async fn messages_wait_for_a_session_that_lasts() {
    let stage = Stage::set().await;
    let login = Login::new(4, "app-one", "account.both").named("worker").lasting();
    let mut peer = Peer::connect(stage.broker.address(), &login).await;
    peer.subscribe("#").await;
    peer.leave().await;
    let mut sender = Peer::connect(stage.broker.address(), &Login::new(4, "app-one", "account.write")).await;
    sender.publish("app-one/devices/dev/down", "waited").await;
    let (mut peer, _, present) = Peer::greet(stage.broker.address(), &login).await;
    assert!(present);
    assert_eq!(peer.next().await.1, "waited");
}

#[tokio::test]
async fn a_kick_ends_every_session_of_one_application() {
    let stage = Stage::set().await;
    let address = stage.broker.address();
    let login = |version, app_id, name| Login::new(version, app_id, "account.both").named(name).lasting();
    let mut old = Peer::connect(address, &login(4, "app-one", "old")).await;
    let mut new = Peer::connect(address, &login(5, "app-one", "new")).await;
    let mut other = Peer::connect(address, &login(5, "app-two", "new")).await;
    old.subscribe("#").await;
    assert_eq!(stage.broker.connections(), 3);

    stage.broker.kick(&"app-one".parse().unwrap());
    assert_eq!(old.ended().await, None);
    assert_eq!(new.ended().await, Some(0x87));
    other.answers().await;

    // Still allowed, so they may come back; but nothing of before is left.
    for (version, name) in [(4, "old"), (5, "new")] {
        let (_, answered, present) = Peer::greet(address, &login(version, "app-one", name)).await;
        assert_eq!((answered, present), (0, false), "{name}");
    }
}

#[tokio::test]
async fn a_will_does_not_outlive_the_right_to_publish_it() {
    let stage = Stage::set().await;
    let address = stage.broker.address();
    let mut observer = Peer::connect(address, &Login::new(4, "app-one", "account.both")).await;
    observer.subscribe("#").await;
    for version in [4, 5] {
        let login = Login::new(version, "app-one", "account.write").with_will("app-one/devices/revoked/down");
        let mut kicked = Peer::connect(address, &login).await;
        stage.keys.revoke("app-one", "account.write");
        stage.broker.check().await;
        kicked.ended().await;
        stage.keys.grant("app-one", "account.write", &[WRITES]);
    }
    observer.publish("app-one/devices/marker/down", "marker").await;
    assert_eq!(observer.next().await.1, "marker");
}

#[tokio::test]
async fn a_check_ends_the_connections_of_credentials_that_are_gone_or_changed() {
    let stage = Stage::set().await;
    let address = stage.broker.address();
    let mut revoked = Peer::connect(address, &Login::new(5, "app-one", "account.read")).await;
    let mut lessened = Peer::connect(address, &Login::new(5, "app-one", "account.both")).await;
    let mut same = Peer::connect(address, &Login::new(5, "app-one", "account.write")).await;
    let mut other = Peer::connect(address, &Login::new(5, "app-two", "account.read")).await;
    stage.keys.revoke("app-one", "account.read");
    stage.keys.grant("app-one", "account.both", &[READS]);
    stage.broker.check().await;
    assert_eq!((revoked.ended().await, lessened.ended().await), (Some(0x87), Some(0x87)));
    same.answers().await;
    other.answers().await;
}

#[tokio::test]
async fn credentials_are_checked_without_being_asked_for() {
    let stage = Stage::set_with(handler::broker::Settings { check_interval_ms: 1, ..settings() }).await;
    let mut peer = Peer::connect(stage.broker.address(), &Login::new(5, "app-one", "account.read")).await;
    stage.keys.revoke("app-one", "account.read");
    assert_eq!(peer.ended().await, Some(0x87));
}

#[tokio::test]
async fn nobody_is_cut_off_because_the_account_service_is_away() {
    let stage = Stage::set().await;
    let mut peer = Peer::connect(stage.broker.address(), &Login::new(4, "app-one", "account.read")).await;
    stage.keys.set_away(true);
    stage.broker.check().await;
    peer.answers().await;
}

#[tokio::test]
async fn what_was_sent_before_leaving_is_not_lost() {
    let stage = Stage::set().await;
    let address = stage.broker.address();
    let mut observer = Peer::connect(address, &Login::new(4, "app-one", "account.read")).await;
    observer.subscribe("#").await;
    // It subscribes too, so that there is something unread when it goes.
    let mut hasty = Peer::connect(address, &Login::new(4, "app-one", "account.both")).await;
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
async fn clients_are_told_that_the_broker_stops() {
    let stage = Stage::set().await;
    let address = stage.broker.address();
    let mut peer = Peer::connect(address, &Login::new(5, "app-one", "account.read")).await;
    let mut silent = Peer::open(address, 4).await;
    stage.broker.shutdown().await;
    assert_eq!(peer.ended().await, Some(0x8b));
    assert_eq!(silent.ended().await, None);
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "it still listens");
}
