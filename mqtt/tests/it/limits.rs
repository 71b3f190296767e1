//! What a client may not do, and that it harms nobody but itself.

use handler::broker::Settings;
use mqtt5::QoS;

use crate::{
    peer::{Login, Peer},
    stage::{Stage, settings},
};

#[tokio::test]
async fn a_packet_that_is_too_large_ends_the_connection_that_sent_it() {
    let stage = Stage::set().await;
    let address = stage.broker.address();
    let mut other = Peer::connect(address, &Login::new(4, "app-one", "account.both")).await;
    let fits = "x".repeat(60_000);
    let too_large = "x".repeat(70_000);
    for (version, reason) in [(4, None), (5, Some(0x95))] {
        let mut peer = Peer::connect(address, &Login::new(version, "app-one", "account.both")).await;
        peer.publish("app-one/devices/dev/down", &fits).await;
        peer.send_publish("app-one/devices/dev/down", &too_large, QoS::AtMostOnce, false).await;
        assert_eq!(peer.ended().await, reason);
        other.answers().await;
    }
}

#[tokio::test]
async fn clients_that_say_nothing_hold_up_nobody() {
    let stage = Stage::set().await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(Peer::open(stage.broker.address(), 4).await);
    }
    let mut peer = Peer::connect(stage.broker.address(), &Login::new(4, "app-one", "account.read")).await;
    peer.answers().await;
}

#[tokio::test]
async fn an_application_has_its_share_of_connections_and_no_more() {
    let stage = Stage::set_with(Settings { connections_per_application_max: 2, ..settings() }).await;
    let address = stage.broker.address();
    let login = |version, app_id| Login::new(version, app_id, "account.read");
    let first = Peer::connect(address, &login(4, "app-one")).await;
    let mut second = Peer::connect(address, &login(4, "app-one")).await;
    for (version, expected) in [(4, 3), (5, 0x97)] {
        let (_, answered, _) = Peer::greet(address, &login(version, "app-one")).await;
        assert_eq!(answered, expected);
    }
    Peer::connect(address, &login(4, "app-two")).await;
    second.answers().await;

    first.leave().await;
    Peer::connect(address, &login(4, "app-one")).await;
}

#[tokio::test]
async fn more_connections_than_may_be_are_not_heard() {
    let stage = Stage::set_with(Settings { connections_max: 1, ..settings() }).await;
    let mut peer = Peer::connect(stage.broker.address(), &Login::new(4, "app-one", "account.read")).await;
    assert_eq!(Peer::open(stage.broker.address(), 4).await.ended().await, None);
    peer.answers().await;
}

#[tokio::test]
async fn a_client_has_twenty_subscriptions_and_no_more() {
    let stage = Stage::set().await;
    let mut peer = Peer::connect(stage.broker.address(), &Login::new(5, "app-one", "account.read")).await;
    for number in 0..20 {
        assert_eq!(peer.subscribe(&format!("app-one/devices/dev-{number}/up")).await, 1);
    }
    assert_eq!(peer.subscribe("app-one/devices/one-more/up").await, 0x97);
    assert_eq!(peer.subscribe("app-one/devices/dev-7/up").await, 1);
}

#[tokio::test]
async fn who_publishes_too_fast_is_held_up_and_loses_nothing() {
    let stage = Stage::set_with(Settings { publishes_per_second_max: 20, ..settings() }).await;
    let mut peer = Peer::connect(stage.broker.address(), &Login::new(4, "app-one", "account.both")).await;
    peer.subscribe("#").await;
    for number in 0..30 {
        peer.send_publish("app-one/devices/dev/down", &number.to_string(), QoS::AtMostOnce, false).await;
    }
    for number in 0..30 {
        assert_eq!(peer.next().await.1, number.to_string());
    }
}

#[tokio::test]
async fn what_is_no_mqtt_ends_the_connection_and_nothing_else() {
    let stage = Stage::set().await;
    let address = stage.broker.address();
    let mut other = Peer::connect(address, &Login::new(4, "app-one", "account.read")).await;
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: somebody\r\nAccept: text/html\r\nAccept-Language: en\r\n\r\n"[..],
        &[0x30, 0x00],
        &[0x10, 0xff, 0xff, 0xff, 0xff, 0x01],
        &[0x10, 0xff, 0xff, 0x7f],
        &[0x10, 0x02, 0x00, 0x10],
        &[0x00, 0x00],
    ] {
        let mut peer = Peer::open(address, 4).await;
        peer.send(bytes).await;
        assert_eq!(peer.ended().await, None, "{bytes:02x?}");
    }
    other.answers().await;
}

#[tokio::test]
async fn a_known_client_that_breaks_the_protocol_is_cut_off() {
    let stage = Stage::set().await;
    let address = stage.broker.address();
    let mut other = Peer::connect(address, &Login::new(4, "app-one", "account.read")).await;
    for (bytes, what) in [
        (&[0x10, 0x00][..], "a second CONNECT"),
        (&[0x20, 0x02, 0x00, 0x00], "a CONNACK from a client"),
        (&[0x90, 0x03, 0x00, 0x01, 0x00], "a SUBACK from a client"),
        (&[0x80, 0x05, 0x00, 0x01, 0x00, 0x00, 0x00], "a SUBSCRIBE with wrong flags"),
        (&[0x82, 0x02, 0x00, 0x01], "a SUBSCRIBE of nothing"),
        (&[0x82, 0x05, 0x00, 0x01, 0x00, 0x09, 0x61], "a SUBSCRIBE that is cut short"),
        (&[0x82, 0x06, 0x00, 0x01, 0x00, 0x01, 0xff, 0x00], "a filter that is no text"),
        (&[0xa2, 0x02, 0x00, 0x01], "an UNSUBSCRIBE of nothing"),
        (&[0x36, 0x03, 0x00, 0x01, 0x61], "quality of service 3"),
        (&[0x30, 0x01, 0x00], "a PUBLISH without a topic"),
        (&[0xf0, 0x00], "AUTH where there is none"),
    ] {
        let mut peer = Peer::connect(address, &Login::new(4, "app-one", "account.both")).await;
        peer.send(bytes).await;
        assert_eq!(peer.ended().await, None, "{what}");
    }
    other.answers().await;
}
