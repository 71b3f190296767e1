//! The data client against a broker that the test controls.

use airlock_client::{
    Error,
    data::{ConnectionEvent, DataClient, MessageStream, QUEUE_MAX, Schedule, Topics},
};
use bytes::BytesMut;
use futures::StreamExt;
use rumqttc::{ConnAck, ConnectReturnCode, Packet, PubAck, Publish, QoS, SubAck, SubscribeReasonCode};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use types::{Credential, DevId, Kind, Kinded, Secret};

const PACKET_BYTES_MAX: usize = 1 << 20;

/// A broker with one connection at a time.
struct Broker {
    listener: TcpListener,
    stream: Option<TcpStream>,
    buffer: BytesMut,
    /// The name of the client.
    client_id: String,
}

impl Broker {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self { listener, stream: None, buffer: BytesMut::new(), client_id: String::new() }
    }

    async fn connect(&mut self) -> DataClient {
        let address = self.listener.local_addr().unwrap().to_string();
        let credential = Credential::Token(Secret::new("token"));
        let app_id = "my-app".parse().unwrap();
        let (client, ()) =
            tokio::join!(DataClient::connect(&address, &app_id, &credential), self.accept(ConnectReturnCode::Success));
        client.unwrap()
    }

    async fn accept(&mut self, code: ConnectReturnCode) {
        self.stream = Some(self.listener.accept().await.unwrap().0);
        self.buffer.clear();
        let Packet::Connect(connect) = self.next().await else { panic!("no connection") };
        self.client_id = connect.client_id;
        self.send(Packet::ConnAck(ConnAck::new(code, false))).await;
    }

    /// The next packet of the client.
    async fn next(&mut self) -> Packet {
        loop {
            if let Ok(packet) = Packet::read(&mut self.buffer, PACKET_BYTES_MAX) {
                return packet;
            }
            let count = self.stream.as_mut().unwrap().read_buf(&mut self.buffer).await.unwrap();
            assert_ne!(count, 0, "the client went away");
        }
    }

    async fn send(&mut self, packet: Packet) {
        let mut bytes = BytesMut::new();
        packet.write(&mut bytes, PACKET_BYTES_MAX).unwrap();
        self.stream.as_mut().unwrap().write_all(&bytes).await.unwrap();
    }

    async fn publish(&mut self, topic: &str, qos: QoS, packet: u16) {
        let mut message = Publish::new(topic, qos, b"{}".to_vec());
        message.pkid = packet;
        self.send(Packet::Publish(message)).await;
    }

    /// The next packet is a subscription to this filter, which is answered.
    async fn subscribed(&mut self, filter: &str, answer: SubscribeReasonCode) {
        let Packet::Subscribe(subscription) = self.next().await else { panic!("no subscription to {filter}") };
        assert_eq!(subscription.filters[0].path, format!("my-app/devices/{filter}"));
        assert_eq!(subscription.filters[0].qos, QoS::AtLeastOnce);
        self.send(Packet::SubAck(SubAck::new(subscription.pkid, vec![answer]))).await;
    }

    async fn granted(&mut self, filter: &str) {
        self.subscribed(filter, SubscribeReasonCode::Success(QoS::AtLeastOnce)).await;
    }

    async fn unsubscribed(&mut self, filter: &str) {
        let Packet::Unsubscribe(end) = self.next().await else { panic!("no end of {filter}") };
        assert_eq!(end.topics, [format!("my-app/devices/{filter}")]);
    }

    async fn stream(&mut self, client: &DataClient, topics: Topics, filter: &str) -> MessageStream {
        let (stream, ()) = tokio::join!(client.stream(topics), self.granted(filter));
        stream.unwrap()
    }
}

fn dev_id() -> DevId {
    "dev-1".parse().unwrap()
}

#[tokio::test]
async fn subscribes_to_what_listeners_need_and_to_nothing_twice() {
    let mut broker = Broker::start().await;
    let client = broker.connect().await;
    let one = broker.stream(&client, Topics::uplinks_of(&dev_id()), "dev-1/up").await;
    let all = broker.stream(&client, Topics::uplinks(), "+/up").await;
    broker.unsubscribed("dev-1/up").await;
    // Covered by the other: this needs no answer of the broker.
    let other = client.stream(Topics::new("message", "dev-2", &[]).unwrap()).await.unwrap();
    drop(all);
    for _ in 0..2 {
        let Packet::Subscribe(subscription) = broker.next().await else { panic!("no subscription") };
        assert!(subscription.filters[0].path.ends_with("/up"));
    }
    broker.unsubscribed("+/up").await;
    drop((one, other));
}

#[tokio::test]
async fn a_message_is_acknowledged_when_it_was_dropped() {
    let mut broker = Broker::start().await;
    let client = broker.connect().await;
    let mut stream = broker.stream(&client, Topics::uplinks(), "+/up").await;
    broker.publish("my-app/devices/dev-1/up", QoS::AtLeastOnce, 7).await;
    broker.publish("my-app/devices/dev-1/up", QoS::AtLeastOnce, 8).await;
    // Also as a stream of the futures crate.
    let first = StreamExt::next(&mut stream).await.unwrap().unwrap();
    drop(stream.next().await.unwrap().unwrap());
    assert!(matches!(broker.next().await, Packet::PubAck(PubAck { pkid: 8 })));
    drop(first);
    assert!(matches!(broker.next().await, Packet::PubAck(PubAck { pkid: 7 })));
}

#[tokio::test]
async fn a_program_learns_what_the_broker_dropped_of_it_and_of_nobody_else() {
    let mut broker = Broker::start().await;
    let client = broker.connect().await;
    let granted = async {
        broker.granted("+/up").await;
        let Packet::Subscribe(subscription) = broker.next().await else { panic!("no subscription") };
        assert_eq!(subscription.filters[0].path, "my-app/events/dropped");
        let answer = vec![SubscribeReasonCode::Success(QoS::AtLeastOnce)];
        broker.send(Packet::SubAck(SubAck::new(subscription.pkid, answer))).await;
    };
    let (stream, ()) = tokio::join!(client.stream(Topics::uplinks().with_dropped()), granted);
    let mut stream = stream.unwrap();
    let mut other = client.stream(Topics::uplinks()).await.unwrap();
    for (client_id, messages) in [("airlock", 3), (&*broker.client_id.clone(), 7)] {
        let event = format!(r#"{{"client_id": "{client_id}", "messages": {messages}}}"#);
        let event = Publish::new("my-app/events/dropped", QoS::AtMostOnce, event.into_bytes());
        broker.send(Packet::Publish(event)).await;
    }
    let error = stream.next().await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Missed { count: 7, .. }), "{error:?}");
    broker.publish("my-app/devices/dev-1/up", QoS::AtMostOnce, 0).await;
    for stream in [&mut stream, &mut other] {
        stream.next().await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_slow_program_learns_how_many_messages_it_missed() {
    let mut broker = Broker::start().await;
    let client = broker.connect().await;
    let mut slow = broker.stream(&client, Topics::uplinks(), "+/up").await;
    let mut quick = client.stream(Topics::uplinks()).await.unwrap();
    for _ in 0..QUEUE_MAX + 2 {
        broker.publish("my-app/devices/dev-1/up", QoS::AtMostOnce, 0).await;
        quick.next().await.unwrap().unwrap();
    }
    let error = slow.next().await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Missed { count: 2, .. }), "{error:?}");
    for _ in 0..QUEUE_MAX {
        slow.next().await.unwrap().unwrap();
    }
    client.close(true).await;
    assert!(slow.next().await.is_none());
}

#[tokio::test]
async fn subscribes_and_sends_again_after_a_lost_connection() {
    let mut broker = Broker::start().await;
    let client = broker.connect().await;
    let (events, mut happened) = mpsc::channel(16);
    let listener = client.on_connection(move |event| events.try_send(event.clone()).unwrap());
    let stream = broker.stream(&client, Topics::uplinks(), "+/up").await;
    let id = dev_id();
    let sent = client.send(&id, [1], 2, true, Schedule::First);
    let lost = async {
        assert!(matches!(broker.next().await, Packet::Publish(_)));
        broker.stream = None;
        broker.accept(ConnectReturnCode::Success).await;
        let Packet::Publish(downlink) = broker.next().await else { panic!("no downlink") };
        assert_eq!(downlink.topic, "my-app/devices/dev-1/down");
        let expected = r#"{"port":2,"confirmed":true,"schedule":"first","payload_raw":"AQ=="}"#;
        assert_eq!(downlink.payload, expected.as_bytes());
        broker.granted("+/up").await;
        broker.send(Packet::PubAck(PubAck::new(downlink.pkid))).await;
    };
    let (sent, ()) = tokio::join!(sent, lost);
    sent.unwrap();
    assert!(matches!(happened.recv().await, Some(ConnectionEvent::Disconnect(_))));
    assert_eq!(happened.recv().await, Some(ConnectionEvent::Reconnect));
    assert_eq!(happened.recv().await, Some(ConnectionEvent::Connect));
    client.off(listener);
    drop(stream);
}

#[tokio::test]
async fn a_connection_on_which_pings_are_not_answered_is_lost() {
    let mut broker = Broker::start().await;
    let client = broker.connect().await;
    let (events, mut happened) = mpsc::channel(16);
    let listener = client.on_connection(move |event| _ = events.try_send(event.clone()));
    // From now on, the next ping is due once there is nothing else to do.
    tokio::time::pause();
    let Some(ConnectionEvent::Disconnect(reason)) = happened.recv().await else { panic!("it is not lost") };
    assert!(reason.contains("ping"), "{reason}");
    assert!(matches!(broker.next().await, Packet::PingReq));
    client.off(listener);
}

#[tokio::test]
async fn a_refused_subscription_leaves_the_client_usable() {
    let mut broker = Broker::start().await;
    let client = broker.connect().await;
    let (stream, ()) =
        tokio::join!(client.stream(Topics::uplinks()), broker.subscribed("+/up", SubscribeReasonCode::Failure));
    assert_eq!(stream.unwrap_err().kind(), Kind::Denied);
    broker.stream(&client, Topics::new("event", "+", &[]).unwrap(), "+/events/#").await;
}

#[tokio::test]
async fn a_refused_credential_ends_the_streams() {
    let mut broker = Broker::start().await;
    let client = broker.connect().await;
    let mut stream = broker.stream(&client, Topics::uplinks(), "+/up").await;
    broker.stream = None;
    broker.accept(ConnectReturnCode::BadUserNamePassword).await;
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), Kind::Unauthenticated);
    assert!(stream.next().await.is_none());
    let error = client.send(&dev_id(), [1], 1, false, Schedule::Replace).await.unwrap_err();
    assert!(matches!(error, Error::Ended { .. }), "{error:?}");
}

// Conformance: The data client for Rust
#[tokio::test]
async fn closing_waits_for_acknowledgements_unless_it_is_forced() {
    for force in [false, true] {
        let mut broker = Broker::start().await;
        let client = std::sync::Arc::new(broker.connect().await);
        let sending = tokio::spawn({
            let client = client.clone();
            async move { client.send(&dev_id(), [1], 1, false, Schedule::Replace).await }
        });
        let Packet::Publish(downlink) = broker.next().await else { panic!("no downlink") };
        sending.abort();
        _ = sending.await;
        let client = std::sync::Arc::into_inner(client).unwrap();
        let answer = async {
            if !force {
                // Still open: it acknowledges what arrives.
                for packet in [7, 8] {
                    broker.publish("my-app/devices/dev-1/up", QoS::AtLeastOnce, packet).await;
                    assert!(matches!(broker.next().await, Packet::PubAck(PubAck { pkid }) if pkid == packet));
                }
                broker.send(Packet::PubAck(PubAck::new(downlink.pkid))).await;
            }
            assert!(matches!(broker.next().await, Packet::Disconnect));
            broker.stream = None;
        };
        tokio::join!(client.close(force), answer);
    }
}
