//! Packets to and from clients: large ones, many at once, and clients that read slowly or not at all.

mod behind;
mod publications;

use mqtt::DownlinkRefusal;
use mqtt5_protocol::{QoS, packet::publish::PublishPacket};

use crate::harness::{
    Harness, publish_up,
    raw_client::{Login, RawClient},
};

/// A client with the subscription `#`.
async fn subscriber(harness: &Harness, version: u8) -> RawClient {
    let mut client =
        RawClient::connect(harness.broker.address(), &Login::new(version, "app-one", "account.both")).await;
    client.subscribe("#").await;
    client
}

#[tokio::test]
async fn delivers_packets_of_any_size_in_both_directions() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
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
    // More than the client may have unacknowledged, and more than its socket holds.
    let body = |number: u32| format!("{number:0>50000}");
    for number in 0..300 {
        handler.publish("app-one/devices/dev/up", &body(number)).await;
    }
    for number in 0..300 {
        assert_eq!(late.next().await.1, body(number));
    }
}

// Conformance: A client that never acknowledges or does not read
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
        publish_up(&mut handler, "app-one", &"x".repeat(100_000)).await;
        other.next().await;
    }
    harness.authenticator.revoke("app-one", "account.both");
    harness.broker.check_credentials().await;
    // What is already on its way may arrive, but then the connection ends.
    silent.closed().await;
    other.ping().await;
}

// Conformance: QoS 1: redelivery in order, and a PUBACK only for what was accepted
#[tokio::test]
async fn sends_again_what_was_not_acknowledged_in_order_and_marked() {
    for version in [4, 5] {
        let harness = Harness::start().await;
        let mut handler = harness.handler().await;
        let login = Login::new(version, "app-one", "account.read").with_client_id("worker").persistent();
        let mut client = RawClient::connect(harness.broker.address(), &login).await;
        client.subscribe("#").await;
        for number in 0..5 {
            publish_up(&mut handler, "app-one", &number.to_string()).await;
        }
        let mut ids = Vec::new();
        for number in 0..5 {
            let (header, packet_id, body) = client.next_unacknowledged().await;
            assert_eq!((header, body), (0x32, number.to_string()));
            ids.push(packet_id);
        }
        // Not in the order in which they were sent.
        client.acknowledge(ids[3]).await;
        client.acknowledge(ids[1]).await;
        client.ping().await;
        drop(client);

        let mut client = RawClient::connect(harness.broker.address(), &login).await;
        publish_up(&mut handler, "app-one", "5").await;
        for (header, expected, number) in
            [(0x3a, Some(ids[0]), "0"), (0x3a, Some(ids[2]), "2"), (0x3a, Some(ids[4]), "4"), (0x32, None, "5")]
        {
            let (found, packet_id, body) = client.next_unacknowledged().await;
            assert_eq!((found, body.as_str()), (header, number));
            assert!(expected.is_none_or(|expected| expected == packet_id), "{packet_id} for {number}");
        }
    }
}

#[tokio::test]
async fn a_client_that_takes_over_its_session_gets_what_was_in_flight() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    let login = Login::new(5, "app-one", "account.read").with_client_id("worker").persistent();
    let mut old = RawClient::connect(harness.broker.address(), &login).await;
    old.subscribe("#").await;
    // More than may be in flight.
    for number in 0..40 {
        publish_up(&mut handler, "app-one", &number.to_string()).await;
    }
    for number in 0..32 {
        assert_eq!(old.next_unacknowledged().await.2, number.to_string());
    }
    let mut new = RawClient::connect(harness.broker.address(), &login).await;
    assert_eq!(old.closed().await, Some(0x8e));
    for number in 0..40 {
        let (header, packet_id, body) = new.next_unacknowledged().await;
        assert_eq!((header, body), (if number < 32 { 0x3a } else { 0x32 }, number.to_string()));
        new.acknowledge(packet_id).await;
    }
}

// Conformance: A client that never acknowledges or does not read
// Conformance: The oldest messages of a full queue are dropped, counted
#[tokio::test]
async fn a_client_that_never_acknowledges_keeps_the_newest_messages_and_stops_nobody() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    let mut stubborn = subscriber(&harness, 4).await;
    let mut other = subscriber(&harness, 4).await;
    for number in 0..1100 {
        publish_up(&mut handler, "app-one", &number.to_string()).await;
        assert_eq!(other.next().await.1, number.to_string());
    }
    let mut ids = Vec::new();
    for number in 0..32 {
        let (_, packet_id, body) = stubborn.next_unacknowledged().await;
        assert_eq!(body, number.to_string());
        ids.push(packet_id);
    }
    for packet_id in ids {
        stubborn.acknowledge(packet_id).await;
    }
    // A thousand are kept, with those in flight.
    let (mut number, mut told) = (132, None);
    while number < 1100 || told.is_none() {
        match stubborn.next().await {
            (topic, body) if topic == "app-one/events/dropped" => told = Some(body),
            (_, body) => {
                assert_eq!(body, number.to_string());
                number += 1;
            }
        }
    }
    let told: serde_json::Value = serde_json::from_str(&told.unwrap()).unwrap();
    assert_eq!(told["messages"], 100);
}

// Conformance: QoS 1: redelivery in order, and a PUBACK only for what was accepted
#[tokio::test]
async fn acknowledges_a_downlink_only_when_it_was_accepted() {
    let harness = Harness::start().await;
    let address = harness.broker.address();
    let mut other = RawClient::connect(address, &Login::new(4, "app-one", "account.both")).await;
    other.subscribe("+/devices/+/down").await;
    harness.downlinks.refuse(Some(DownlinkRefusal::Unavailable));
    for qos in [QoS::AtLeastOnce, QoS::ExactlyOnce] {
        let mut old = RawClient::connect(address, &Login::new(4, "app-one", "account.write")).await;
        old.send_publish("app-one/devices/dev/down", "lost?", qos, false).await;
        assert_eq!(old.closed().await, None);
        let mut new = RawClient::connect(address, &Login::new(5, "app-one", "account.write")).await;
        new.send_publish("app-one/devices/dev/down", "lost?", qos, false).await;
        let answer = new.wait_for(if qos == QoS::AtLeastOnce { 0x40 } else { 0x50 }).await;
        assert_eq!(answer[2], 0x83);
    }
    // Nothing is gained by sending these again.
    for (refusal, code) in
        [(DownlinkRefusal::Failed, 0x83), (DownlinkRefusal::UnknownDevice, 0x90), (DownlinkRefusal::Invalid, 0x99)]
    {
        harness.downlinks.refuse(Some(refusal));
        for (version, expected) in [(4, None), (5, Some(&code))] {
            let mut client = RawClient::connect(address, &Login::new(version, "app-one", "account.write")).await;
            client.send_publish("app-one/devices/dev/down", "refused", QoS::AtLeastOnce, false).await;
            assert_eq!(client.wait_for(0x40).await.get(2), expected, "{refusal:?}");
        }
    }
    harness.downlinks.refuse(None);
    let mut client = RawClient::connect(address, &Login::new(4, "app-one", "account.write")).await;
    client.publish("app-one/devices/dev/down", "kept").await;
    assert_eq!(harness.handler().await.next().await.1, "kept");
    assert_eq!(other.next().await.1, "kept", "subscribers got a copy of what was refused");
}

// Conformance: QoS 2 without PUBREL, or with one identifier twice: bounded, and accepted once
#[tokio::test]
async fn a_publication_with_qos_2_that_is_sent_twice_is_accepted_once() {
    let harness = Harness::start().await;
    let login = Login::new(4, "app-one", "account.write").with_client_id("worker").persistent();
    let mut client = RawClient::connect(harness.broker.address(), &login).await;
    client.send_publish("app-one/devices/dev/down", "once", QoS::ExactlyOnce, false).await;
    client.wait_for(0x50).await;
    drop(client);
    let mut client = RawClient::connect(harness.broker.address(), &login).await;
    client.send_publish("app-one/devices/dev/down", "once", QoS::ExactlyOnce, false).await;
    client.wait_for(0x50).await;
    client.send(&[0x62, 2, 0, 1]).await;
    client.wait_for(0x70).await;
    client.publish("app-one/devices/dev/down", "then").await;
    let mut handler = harness.handler().await;
    assert_eq!((handler.next().await.1, handler.next().await.1), ("once".to_owned(), "then".to_owned()));
}

// Conformance: Topic aliases: 0 and those above the maximum are refused
#[tokio::test]
async fn mqtt_5_has_aliases_subscription_identifiers_and_no_local() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    let mut client = subscriber(&harness, 5).await;
    client.unsubscribe("#").await;
    // A subscription with the identifier 7, and the same without what the client publishes itself.
    client.send(b"\x82\x10\x00\x63\x02\x0b\x07\x00\x08+/+/+/up\x01").await;
    assert_eq!(client.wait_for(0x90).await, [0, 0x63, 0, 1]);
    client.send(b"\x82\x10\x00\x64\x00\x00\x0a+/+/+/down\x05").await;
    assert_eq!(client.wait_for(0x90).await, [0, 0x64, 0, 1]);
    publish_up(&mut handler, "app-one", "up").await;
    let properties = client.wait_for(0x32).await;
    let after_topic = &properties[2 + "app-one/devices/dev/up".len()..];
    assert_eq!(&after_topic[2..], b"\x02\x0b\x07up");
    client.acknowledge(u16::from_be_bytes([after_topic[0], after_topic[1]])).await;

    for (topic, body) in [("app-one/devices/dev/down", "first"), ("", "second")] {
        let mut packet = PublishPacket::new(topic, body.as_bytes().to_vec(), QoS::AtLeastOnce).with_topic_alias(16);
        packet.packet_id = Some(9);
        client.send_packet(&packet).await;
        client.wait_for(0x40).await;
        assert_eq!(handler.next().await, ("app-one/devices/dev/down".to_owned(), body.to_owned()));
    }
    publish_up(&mut handler, "app-one", "its own downlinks were not delivered").await;
    client.wait_for(0x32).await;
    for (topic, alias, reason) in
        [("", 3, 0x82), ("app-one/devices/dev/down", 0, 0x94), ("app-one/devices/dev/down", 17, 0x94)]
    {
        let mut client = subscriber(&harness, 5).await;
        client.send_packet(&PublishPacket::new(topic, "x", QoS::AtMostOnce).with_topic_alias(alias)).await;
        assert_eq!(client.closed().await, Some(reason), "{topic} {alias}");
    }
}
