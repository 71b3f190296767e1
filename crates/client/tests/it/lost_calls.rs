//! Calls of which nobody knows whether they took effect, and those that certainly had none.

use airlock_client::{
    Error, Trust,
    chirpstack::ChirpStackClient,
    things_stack::{QueueOperation, ThingsStackClient},
};
use api::chirpstack::DeviceQueueItem;
use tokio::{io::AsyncReadExt, net::TcpListener};
use types::Secret;

/// Sends a downlink over gRPC and over HTTP to this address.
async fn send_downlinks(url: &str) -> [Error; 2] {
    let key = Secret::new("key");
    let chirpstack = ChirpStackClient::connect(url, &Trust::Plaintext, key.clone()).unwrap();
    let things_stack = ThingsStackClient::new(url, &Trust::Plaintext).unwrap();
    let target = ("app", None, "dev");
    [
        chirpstack.enqueue(DeviceQueueItem::default(), false).await.unwrap_err(),
        things_stack.queue_downlinks(&key, target, QueueOperation::Push, b"{}".to_vec()).await.unwrap_err(),
    ]
}

#[tokio::test]
async fn a_call_may_have_happened_if_the_connection_is_lost_before_the_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            // Part of the request has arrived when the connection is closed.
            _ = connection.read(&mut [0; 1024]).await;
        }
    });
    for error in send_downlinks(&url).await {
        assert!(matches!(error, Error::Lost { .. }) && error.may_have_happened(), "{error:?}");
    }
}

#[tokio::test]
async fn a_call_has_not_happened_if_there_was_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for error in send_downlinks(&url).await {
        assert!(matches!(error, Error::Unreachable { .. }) && !error.may_have_happened(), "{error:?}");
    }
}
