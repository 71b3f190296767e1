//! Publications of one client that are handed over together.

use mqtt5_protocol::QoS;

use crate::harness::{
    Harness, SLOW,
    raw_client::{Login, RawClient},
};

const SLOW_TOPIC: &str = "app-one/devices/slow/down";
const FAST_TOPIC: &str = "app-one/devices/fast/down";

async fn client(harness: &Harness) -> RawClient {
    assert_eq!(SLOW_TOPIC.split('/').nth(2), Some(SLOW));
    RawClient::connect(harness.broker.address(), &Login::new(4, "app-one", "account.write")).await
}

#[tokio::test]
async fn a_downlink_does_not_wait_for_those_of_other_devices_and_is_acknowledged_behind_them() {
    let harness = Harness::start().await;
    let (mut client, mut handler) = (client(&harness).await, harness.handler().await);
    harness.downlinks.hold(true);
    client.send_publish(SLOW_TOPIC, "first", QoS::AtLeastOnce, false).await;
    client.send_publish(FAST_TOPIC, "second", QoS::AtLeastOnce, false).await;
    assert_eq!(handler.next().await.1, "second");
    client.send(&[0xc0, 0]).await;
    assert_eq!(client.first().await.unwrap().0, 0xd0, "acknowledged before the first one");
    harness.downlinks.hold(false);
    assert_eq!(handler.next().await.1, "first");
    for packet_id in [1, 2] {
        let (header, body) = client.first().await.unwrap();
        assert_eq!((header, body), (0x40, vec![0, packet_id]));
    }
}

#[tokio::test]
async fn downlinks_for_one_device_keep_their_order_among_many() {
    let harness = Harness::start().await;
    let (mut client, mut handler) = (client(&harness).await, harness.handler().await);
    harness.downlinks.hold(true);
    let topics = ["app-one/devices/one/down", SLOW_TOPIC, "app-one/devices/two/down"];
    for number in 0..150 {
        client.send_publish(topics[number % 3], &number.to_string(), QoS::AtLeastOnce, false).await;
    }
    harness.downlinks.hold(false);
    let mut next = [0, 1, 2];
    for _ in 0..150 {
        let (topic, body) = handler.next().await;
        let device = topics.iter().position(|other| *other == topic).unwrap();
        assert_eq!(body, next[device].to_string());
        next[device] += 3;
    }
    for packet_id in 1..=150 {
        assert_eq!(client.wait_for(0x40).await, [0, packet_id]);
    }
}

#[tokio::test]
async fn what_a_client_has_published_is_handed_over_after_it_has_gone() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    for leaves in [true, false] {
        let mut client = client(&harness).await;
        harness.downlinks.hold(true);
        client.send_publish(SLOW_TOPIC, "held", QoS::AtMostOnce, false).await;
        client.send_publish(FAST_TOPIC, "free", QoS::AtMostOnce, false).await;
        assert_eq!(handler.next().await.1, "free");
        if leaves {
            client.send(&[0xe0, 0]).await;
        }
        drop(client);
        harness.downlinks.hold(false);
        assert_eq!(handler.next().await.1, "held");
    }
}

#[tokio::test]
async fn a_subscription_is_acknowledged_behind_what_was_published_before_it() {
    let harness = Harness::start().await;
    let login = Login::new(4, "app-one", "account.both");
    let mut client = RawClient::connect(harness.broker.address(), &login).await;
    let mut handler = harness.handler().await;
    harness.downlinks.hold(true);
    client.send_publish(SLOW_TOPIC, "held", QoS::AtLeastOnce, false).await;
    client.send_publish(FAST_TOPIC, "free", QoS::AtLeastOnce, false).await;
    assert_eq!(handler.next().await.1, "free");
    client.send(b"\x82\x0d\x00\x63\x00\x08+/+/+/up\x01").await;
    harness.downlinks.hold(false);
    let headers = [client.first().await, client.first().await, client.first().await];
    assert_eq!(headers.map(|packet| packet.unwrap().0), [0x40, 0x40, 0x90]);
}

#[tokio::test]
async fn a_publication_that_cannot_be_kept_ends_the_connection_and_no_other_is_lost() {
    let harness = Harness::start().await;
    let (mut client, mut handler) = (client(&harness).await, harness.handler().await);
    harness.downlinks.hold(true);
    client.send_publish(SLOW_TOPIC, "kept", QoS::AtLeastOnce, false).await;
    client.send_publish(FAST_TOPIC, "free", QoS::AtLeastOnce, false).await;
    assert_eq!(handler.next().await.1, "free");
    harness.downlinks.refuse(Some(mqtt::DownlinkRefusal::Unavailable));
    client.send_publish(FAST_TOPIC, "lost", QoS::AtLeastOnce, false).await;
    harness.downlinks.hold(false);
    assert_eq!(handler.next().await.1, "kept");
    assert_eq!([client.wait_for(0x40).await, client.wait_for(0x40).await], [[0, 1], [0, 2]]);
    assert_eq!(client.closed().await, None);
}

/// It is sent again on the next connection.
#[tokio::test]
async fn what_a_client_published_before_it_connected_again_is_accepted_once() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    let login = Login::new(4, "app-one", "account.write").with_client_id("worker").persistent();
    let mut old = RawClient::connect(harness.broker.address(), &login).await;
    harness.downlinks.hold(true);
    old.send_publish(SLOW_TOPIC, "once", QoS::ExactlyOnce, false).await;
    old.send_publish(FAST_TOPIC, "free", QoS::AtLeastOnce, false).await;
    assert_eq!(handler.next().await.1, "free");
    let mut new = RawClient::connect(harness.broker.address(), &login).await;
    assert_eq!(old.closed().await, None);
    new.send_publish(SLOW_TOPIC, "once", QoS::ExactlyOnce, false).await;
    harness.downlinks.hold(false);
    new.wait_for(0x50).await;
    new.publish(SLOW_TOPIC, "then").await;
    assert_eq!((handler.next().await.1, handler.next().await.1), ("once".to_owned(), "then".to_owned()));
}
