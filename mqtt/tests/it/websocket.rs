//! MQTT over WebSocket, frame by frame.

use std::net::SocketAddr;

use futures::{SinkExt, StreamExt};
use mqtt::BrokerSettings;
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{
        Error, Message,
        client::IntoClientRequest,
        http::{HeaderValue, Response, StatusCode},
    },
};

use crate::harness::{Harness, eventually, publish_up, raw_client::Login, settings};

type Frames = WebSocketStream<TcpStream>;

async fn harness() -> (Harness, SocketAddr) {
    let settings = BrokerSettings { websocket_listen: "127.0.0.1:0".to_owned(), ..settings() };
    let harness = Harness::start_with(settings).await;
    let address = harness.broker.websocket_address().unwrap();
    (harness, address)
}

/// Opens a WebSocket for these subprotocols; returns it with the response.
async fn open(
    address: SocketAddr,
    protocols: Option<&'static str>,
) -> Result<(Frames, Response<Option<Vec<u8>>>), Error> {
    let mut request = format!("ws://{address}/mqtt").into_client_request().unwrap();
    let value = protocols.map(HeaderValue::from_static);
    value.map(|value| request.headers_mut().insert("sec-websocket-protocol", value));
    eventually("the handshake", client_async(request, TcpStream::connect(address).await.unwrap())).await
}

/// The bytes of the next frame.
async fn next(frames: &mut Frames) -> Vec<u8> {
    eventually("a frame", frames.next()).await.unwrap().unwrap().into_data().to_vec()
}

// Conformance: Over WebSocket, packets may be split and joined in any way
#[tokio::test]
async fn packets_may_be_split_and_joined_by_frames_in_any_way() {
    let (harness, address) = harness().await;
    for version in [3, 4, 5] {
        let protocol = if version == 3 { "mqttv3.1" } else { "other, mqtt" };
        let (mut frames, response) = open(address, Some(protocol)).await.unwrap();
        assert_eq!(response.headers()["sec-websocket-protocol"], protocol.trim_start_matches("other, "));
        let login = Login::new(
            if version == 3 { crate::harness::raw_client::MQTT_31 } else { version },
            "app-one",
            "account.read",
        );
        let login = login.with_client_id("browser").bytes();
        for byte in &login[..login.len() - 1] {
            frames.send(Message::binary(vec![*byte])).await.unwrap();
        }
        // The end of CONNECT, SUBSCRIBE and the beginning of PINGREQ.
        let subscribe: &[u8] = if version == 5 { b"\x82\x07\0\x01\0\0\x01#\0" } else { b"\x82\x06\0\x01\0\x01#\0" };
        frames.send(Message::binary([&login[login.len() - 1..], subscribe, b"\xc0"].concat())).await.unwrap();
        frames.send(Message::Ping("between".into())).await.unwrap();
        frames.send(Message::binary(b"\0".as_slice())).await.unwrap();
        let mut received = Vec::new();
        while !received.ends_with(b"\xd0\0") {
            received.extend(next(&mut frames).await);
        }
        assert_eq!((received[0], received[3]), (0x20, 0), "MQTT {version}");
        publish_up(&mut harness.handler().await, "app-one", &"long".repeat(20_000)).await;
        let mut received = Vec::new();
        while received.len() < 80_000 {
            received.extend(next(&mut frames).await);
        }
        assert!(received.ends_with(b"longlong"));
        frames.send(Message::binary(b"\xe0\0".as_slice())).await.unwrap();
        assert!(matches!(eventually("the end", frames.next()).await, Some(Ok(Message::Close(_)))));
    }
}

// Conformance: Over WebSocket, packets may be split and joined in any way
#[tokio::test]
async fn refuses_what_is_not_mqtt() {
    let (_harness, address) = harness().await;
    for protocols in [None, Some("chat"), Some("mqtt5, mqttv5")] {
        let Err(Error::Http(response)) = open(address, protocols).await else { panic!("{protocols:?} was accepted") };
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    }
    let connect = Login::new(4, "app-one", "account.read").bytes();
    for first in
        [Message::text("no bytes"), Message::binary(vec![0x10; 200_000]), Message::binary(b"GET / ".as_slice())]
    {
        let (mut frames, _) = open(address, Some("mqtt")).await.unwrap();
        // The broker may be gone before everything is sent.
        _ = frames.send(first).await;
        _ = frames.send(Message::binary(connect.clone())).await;
        while let Some(Ok(frame)) = eventually("the end", frames.next()).await {
            assert!(!frame.is_binary(), "{frame:?}");
        }
    }
}
