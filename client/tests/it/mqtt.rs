//! The MQTT client against a broker that misbehaves.

use std::{iter, net::SocketAddr};

use airlock_client::{Error, mqtt::MqttClient};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use types::{Credential, Downlink, Secret};

const ACCEPTED: &[u8] = &[0x20, 2, 0, 0];
const NOT_AUTHORIZED: &[u8] = &[0x20, 2, 0, 5];
/// A PUBLISH of `1` on the topic `a`.
const MESSAGE: &[u8] = &[0x30, 4, 0, 1, b'a', b'1'];

/// Serves one connection per script: each of its entries is sent after the next packet of the client.
///
/// The last connection stays open, the others are closed.
async fn broker(scripts: Vec<Vec<Vec<u8>>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut open = None;
        for script in scripts {
            drop(open.take());
            let (mut stream, _) = listener.accept().await.unwrap();
            for bytes in script {
                let mut packet = [0; 4096];
                assert_ne!(stream.read(&mut packet).await.unwrap(), 0, "the client went away");
                stream.write_all(&bytes).await.unwrap();
            }
            open = Some(stream);
        }
        std::future::pending::<()>().await;
    });
    address
}

async fn connect(address: SocketAddr) -> MqttClient {
    let credential = Credential::Token(Secret::new("token"));
    MqttClient::connect(&address.to_string(), &"my-app".parse().unwrap(), &credential).await.unwrap()
}

#[tokio::test]
async fn says_that_its_queue_is_full_rather_than_that_the_broker_is_slow() {
    let messages = iter::repeat_n(MESSAGE, 1001).flatten().copied().collect();
    let mut client = connect(broker(vec![vec![ACCEPTED.to_vec(), messages]]).await).await;
    let error = client.send(&"my-device".parse().unwrap(), &Downlink::default()).await.unwrap_err();
    assert!(matches!(error, Error::QueueFull { messages_max: 1000, .. }), "{error:?}");
}

#[tokio::test]
async fn says_that_the_connection_ended_after_its_error_was_reported() {
    let mut client = connect(broker(vec![vec![ACCEPTED.to_vec()], vec![NOT_AUTHORIZED.to_vec()]]).await).await;
    let error = client.next().await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
    let error = client.next().await.unwrap_err();
    assert!(matches!(error, Error::Ended { .. }), "{error:?}");
}
