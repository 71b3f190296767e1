//! Limits on clients, and that a client that exceeds them affects no other.

mod owners;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mqtt::BrokerSettings;
use mqtt5_protocol::{Properties, QoS, packet::publish::PublishPacket};
use server::rate_limit::RateLimit;
use tokio::task::JoinSet;
use types::CREDENTIAL_BYTES_MAX;

use crate::harness::{
    Harness, READ, eventually,
    raw_client::{Login, RawClient},
    settings,
};

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
