//! Packets between clients and the engine: large ones, many at once, and clients that read slowly or not at all.

use mqtt5::QoS;

use crate::{
    harness::{Harness, publish_up},
    raw_client::{Login, RawClient},
};

/// A client with the subscription `#`.
async fn subscriber(harness: &Harness, version: u8) -> RawClient {
    let mut client =
        RawClient::connect(harness.broker.address(), &Login::new(version, "app-one", "account.both")).await;
    client.subscribe("#").await;
    client
}

/// The established connections to a port of this process.
fn connections_to(address: std::net::SocketAddr) -> usize {
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let port = format!(":{:04X}", address.port());
    let is_ours = |line: &&str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        columns[1].ends_with(&port) && columns[3] == "01"
    };
    table.lines().skip(1).filter(is_ours).count()
}

#[tokio::test]
async fn a_client_takes_no_connection_to_the_engine() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    let mut clients = Vec::new();
    for _ in 0..10 {
        clients.push(subscriber(&harness, 5).await);
    }
    assert_eq!(connections_to(harness.broker.address()), clients.len());
    assert_eq!(connections_to(harness.broker.internal().address), 1, "the handler's");
    publish_up(&mut handler, "app-one", "for all").await;
    for client in &mut clients {
        assert_eq!(client.next().await.1, "for all");
    }
}

#[tokio::test]
async fn delivers_packets_of_any_size_in_both_directions() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    handler.subscribe("+/devices/+/down").await;
    let mut client = subscriber(&harness, 4).await;
    for length in [0, 1, 100, 1_000, 8_150, 8_192, 60_000] {
        let body = "x".repeat(length);
        client.publish("app-one/devices/dev/down", &body).await;
        assert_eq!(handler.next().await.1, body);
        assert_eq!(client.next().await.1, body);
    }
    let longest = "x".repeat(mqtt::PACKET_BYTES_MAX - 100);
    publish_up(&mut handler, "app-one", &longest).await;
    assert_eq!(client.next().await.1, longest);
}

#[tokio::test]
async fn answers_a_packet_while_the_next_one_is_incomplete() {
    let harness = Harness::start().await;
    let mut client = RawClient::connect(harness.broker.address(), &Login::new(4, "app-one", "account.read")).await;
    // A PINGREQ, and the first byte of another.
    client.send(&[0xc0, 0, 0xc0]).await;
    client.wait_for(0xd0).await;
    client.send(&[0]).await;
    client.wait_for(0xd0).await;
}

#[tokio::test]
async fn a_client_that_reads_late_gets_every_message_in_order() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    let mut late = subscriber(&harness, 5).await;
    // More than the client may have unacknowledged, and more than its socket and its stream to the engine hold.
    let body = |number: u32| format!("{number:0>50000}");
    for number in 0..300 {
        handler.publish("app-one/devices/dev/up", &body(number)).await;
    }
    for number in 0..300 {
        assert_eq!(late.next().await.1, body(number));
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_delays_no_other() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    let mut silent = subscriber(&harness, 5).await;
    let mut other = subscriber(&harness, 5).await;
    let body = "x".repeat(100_000);
    for _ in 0..30 {
        for _ in 0..10 {
            publish_up(&mut handler, "app-one", &body).await;
        }
        for _ in 0..10 {
            assert_eq!(other.next().await.1, body);
        }
    }
    // It blocks only itself, and can go on.
    assert_eq!(silent.next().await.1, body);
    silent.ping().await;
}

#[tokio::test]
async fn ends_the_connection_of_a_client_that_does_not_read_when_its_credential_is_revoked() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    let mut silent = subscriber(&harness, 5).await;
    let mut other = RawClient::connect(harness.broker.address(), &Login::new(5, "app-one", "account.read")).await;
    other.subscribe("#").await;
    for _ in 0..300 {
        handler.send_publish("app-one/devices/dev/up", &"x".repeat(100_000), QoS::AtMostOnce, false).await;
        other.next().await;
    }
    harness.authenticator.revoke("app-one", "account.both");
    harness.broker.check_credentials().await;
    // What is already on its way may arrive, but then the connection ends.
    silent.closed().await;
    other.ping().await;
}
