//! Violations of the protocol, which end a connection.

use mqtt::BrokerSettings;
use mqtt5_protocol::{Properties, QoS};

use crate::harness::{
    Harness,
    raw_client::{Login, RawClient},
    settings,
};

// Conformance: What is not a CONNECT, a second one, another protocol name or level
#[tokio::test]
async fn disconnects_clients_that_do_not_speak_mqtt() {
    let harness = Harness::start().await;
    let address = harness.broker.address();
    let mut other = RawClient::connect(address, &Login::new(4, "app-one", "account.read")).await;
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: somebody\r\nAccept: text/html\r\nAccept-Language: en\r\n\r\n"[..],
        &[0x30, 0x00],
        &[0x10, 0xff, 0xff, 0xff, 0xff, 0x01],
        &[0x10, 0xff, 0xff, 0x7f],
        &[0x10, 0x02, 0x00, 0x10],
        &[0x00, 0x00],
    ] {
        let mut client = RawClient::open(address, 4).await;
        client.send(bytes).await;
        assert_eq!(client.closed().await, None, "{bytes:02x?}");
    }
    other.ping().await;
}

// Conformance: What is not a CONNECT, a second one, another protocol name or level
// Conformance: Truncated packets, wrong identifiers, flags, QoS and text: closed
#[tokio::test]
async fn disconnects_clients_that_violate_the_protocol() {
    let harness = Harness::start().await;
    let address = harness.broker.address();
    let mut other = RawClient::connect(address, &Login::new(4, "app-one", "account.read")).await;
    let login = Login::new(4, "app-one", "account.both");
    let again = login.bytes();
    for (bytes, what) in [
        (&[0x10, 0x00][..], "a second CONNECT that is empty"),
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
        (&again, "a second CONNECT with the same credential"),
        (&[0x32, 0x03, 0x00, 0x01, 0x61], "a PUBLISH with QoS 1 and no packet identifier"),
        (&[0x32, 0x05, 0x00, 0x01, 0x61, 0x00, 0x00], "a PUBLISH with QoS 1 and the packet identifier 0"),
        (&[0x82, 0x06, 0x00, 0x00, 0x00, 0x01, 0x61, 0x00], "a SUBSCRIBE with the packet identifier 0"),
        (&[0xa2, 0x05, 0x00, 0x00, 0x00, 0x01, 0x61], "an UNSUBSCRIBE with the packet identifier 0"),
        (&[0xa0, 0x05, 0x00, 0x01, 0x00, 0x01, 0x61], "an UNSUBSCRIBE with wrong flags"),
        (&[0x60, 0x02, 0x00, 0x01], "a PUBREL with wrong flags"),
        (&[0xc1, 0x00], "a PINGREQ with flags"),
        (&[0xe1, 0x00], "a DISCONNECT with flags"),
        (&[0x42, 0x02, 0x00, 0x01], "a PUBACK with flags"),
        (&[0x40, 0x01, 0x00], "a PUBACK that is cut short"),
        (&[0x82, 0x05, 0x00, 0x01, 0x00, 0x00, 0x01], "an empty filter"),
        (&[0x82, 0x06, 0x00, 0x01, 0x00, 0x01, 0x61, 0x03], "a subscription with QoS 3"),
        (&[0x82, 0x08, 0x00, 0x01, 0x00, 0x03, 0xed, 0xa0, 0x80, 0x00], "a filter with a surrogate"),
        (&[0x30, 0x05, 0x00, 0x03, 0x61, 0x00, 0x62], "a topic with a NUL"),
    ] {
        let mut client = RawClient::connect(address, &login).await;
        client.send(bytes).await;
        assert_eq!(client.closed().await, None, "{what}");
    }
    other.ping().await;
}

// Conformance: What is not a CONNECT, a second one, another protocol name or level
#[tokio::test]
async fn refuses_connects_that_violate_the_protocol() {
    let harness = Harness::start().await;
    let address = harness.broker.address();
    let rest = b"\x00\x3c\x00\x00\x00\x07app-one\x00\x0caccount.both";
    let rest_5 = b"\x00\x3c\x00\x00\x00\x00\x07app-one\x00\x0caccount.both";
    let twice = b"\x00\x3c\x0a\x11\x00\x00\x00\x01\x11\x00\x00\x00\x01\x00\x00\x00\x07app-one\x00\x0caccount.both";
    for (head, rest, what) in [
        (&b"\x00\x04MQTX\x04\xc2"[..], &rest[..], "another name"),
        (b"\x00\x06MQIsdp\x04\xc2", rest, "the name of MQTT 3.1 with the level of 3.1.1"),
        (b"\x00\x04MQTT\x00\xc2", rest, "level 0"),
        (b"\x00\x04MQTT\x04\xc3", rest, "the reserved flag"),
        (b"\x00\x04MQTT\x04\xda", rest, "a will with QoS 3"),
        (b"\x00\x04MQTT\x04\x42", rest, "a password without a name"),
        (b"\x00\x04MQTT\x05\xc2", twice, "a property twice"),
        (b"\x00\x04MQTT\x05\xc3", rest_5, "the reserved flag"),
    ] {
        let mut client = RawClient::open(address, 4).await;
        let length = u8::try_from(head.len() + rest.len()).unwrap();
        client.send(&[&[0x10, length], head, rest].concat()).await;
        // Refused with a code, or closed: but never accepted.
        let answer = client.first().await;
        assert!(
            answer.as_ref().is_none_or(|(header, body)| (*header, body[1] > 0) == (0x20, true)),
            "{what}: {answer:?}"
        );
    }
}

/// Whatever is large is refused before it takes memory or time.
// Conformance: Thousands of properties, long client identifiers and topics: refused
#[tokio::test]
async fn refuses_client_identifiers_and_topics_that_are_too_long() {
    let harness = Harness::start().await;
    let address = harness.broker.address();
    let long: &'static str = Box::leak("x".repeat(60_000).into_boxed_str());
    let slashes = "/".repeat(60_000);
    for (version, refused) in [(4, 2), (5, 0x85)] {
        let login = Login::new(version, "app-one", "account.both");
        assert_eq!(RawClient::try_connect(address, &login.clone().with_client_id(long)).await.1, refused);
        let mut client = RawClient::connect(address, &login).await;
        assert!(client.subscribe(&slashes).await >= 0x80);
        assert!(client.subscribe(&format!("app-one{slashes}")).await >= 0x80);
        client.publish(&slashes, "nowhere").await;
        client.publish(&format!("app-one/devices/dev/down{slashes}"), "nowhere").await;
        client.publish("app-one/devices/dev/down", "there").await;
    }
    assert_eq!(harness.handler().await.next().await.1, "there");
}

/// Those of a will stay in memory as long as the connection.
// Conformance: Thousands of properties, long client identifiers and topics: refused
#[tokio::test]
async fn refuses_a_connect_with_too_many_properties() {
    let harness = Harness::start().await;
    let many = || {
        let mut properties = Properties::new();
        (0..10_000).for_each(|_| properties.add_user_property(String::new(), String::new()));
        properties
    };
    for is_will in [false, true] {
        let login = Login::new(5, "app-one", "account.both").with_will("app-one/devices/dev/down");
        let mut packet = login.packet();
        *(if is_will { &mut packet.will_properties } else { &mut packet.properties }) = many();
        let mut client = RawClient::open(harness.broker.address(), 5).await;
        client.send_packet(&packet).await;
        assert_eq!(client.wait_for(0x20).await[1], 0x95);
    }
}

// Conformance: Truncated packets, wrong identifiers, flags, QoS and text: closed
#[tokio::test]
async fn disconnects_clients_that_break_the_rules_of_publications() {
    let harness = Harness::start().await;
    let address = harness.broker.address();
    for (bytes, reason, what) in [
        (&b"\x32\x06\x00\x01a\x00\x00\x00"[..], 0x82, "QoS 1 with the packet identifier 0"),
        (b"\x30\x04\x00\x01+\x00", 0x90, "a topic with a wildcard"),
        (b"\x38\x04\x00\x01a\x00", 0x81, "a duplicate with QoS 0"),
        (b"\x36\x06\x00\x01a\x00\x01\x00", 0x81, "QoS 3"),
        (b"\x50\x02\x00\x01", 0x82, "a PUBREC, without any QoS 2"),
        (b"\x82\x0c\x00\x01\x02\x0b\x00\x00\x04+/up\x01", 0x82, "the subscription identifier 0"),
        (b"\x30\x08\x00\x01a\x04\x01\x00\x01\x00", 0x81, "a property twice"),
        (b"\x82\x06\x00\x00\x00\x00\x01a\x01", 0x81, "a SUBSCRIBE whose length is wrong"),
    ] {
        let mut client = RawClient::connect(address, &Login::new(5, "app-one", "account.both")).await;
        client.send(bytes).await;
        assert_eq!(client.closed().await, Some(reason), "{what}");
    }
}

// Conformance: QoS 2 without PUBREL, or with one identifier twice: bounded, and accepted once
#[tokio::test]
async fn bounds_publications_with_qos_2_that_are_never_released() {
    let harness = Harness::start_with(BrokerSettings { publishes_per_second_max: 1000, ..settings() }).await;
    let mut client = RawClient::connect(harness.broker.address(), &Login::new(5, "app-one", "account.write")).await;
    for _ in 0..100 {
        client.send_publish("app-one/devices/dev/down", "", QoS::ExactlyOnce, false).await;
        client.wait_for(0x50).await;
    }
    client.send_publish("app-one/devices/dev/down", "", QoS::ExactlyOnce, false).await;
    assert_eq!(client.closed().await, Some(0x93));
}

// Conformance: Keep-alive: at most 1200 s, and closed after one and a half
#[tokio::test]
async fn disconnects_a_client_that_does_not_keep_alive() {
    let harness = Harness::start().await;
    let mut client = RawClient::open(harness.broker.address(), 5).await;
    // It promises a packet every second.
    let body = b"\x00\x04MQTT\x05\xc2\x00\x01\x00\x00\x00\x00\x07app-one\x00\x0caccount.read";
    client.send(&[&[0x10, u8::try_from(body.len()).unwrap()], &body[..]].concat()).await;
    client.wait_for(0x20).await;
    assert_eq!(client.closed().await, Some(0x8d));
}
