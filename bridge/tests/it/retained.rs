//! Retained messages of a broker without shared subscriptions. Brokers that have them retain nothing for those who share.

use std::collections::BTreeSet;

use bridge::{
    Remote,
    broker::{Attempt, BrokerConnection, BrokerReceiver, ReceiveLease, ReceiveLeases, ReceivedMessage},
};
use futures::future::{BoxFuture, pending, ready};
use testing::CountingRandom;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

/// This process is the only one.
struct Only;

impl ReceiveLeases for Only {
    fn take_part<'a>(&'a self, _client_id: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(pending())
    }

    fn leave<'a>(&'a self, _client_id: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(ready(Ok(false)))
    }

    fn acquire(&self) -> BoxFuture<'_, Result<Option<Box<dyn ReceiveLease>>, String>> {
        Box::pin(async { Ok(Some(Box::new(Self) as Box<dyn ReceiveLease>)) })
    }
}

impl ReceiveLease for Only {
    fn client_id(&self) -> &str {
        "airlock-in"
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(pending())
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(ready(()))
    }
}

struct Receiver(mpsc::UnboundedSender<String>);

impl BrokerReceiver for Receiver {
    fn receive(&self, message: ReceivedMessage) -> BoxFuture<'_, Attempt> {
        self.0.send(String::from_utf8(message.payload.to_vec()).unwrap()).unwrap();
        Box::pin(ready(Attempt::Done))
    }
}

/// Reads a packet of less than 128 bytes: its type, and the rest.
async fn read(connection: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let first = connection.read_u8().await.ok()?;
    let mut rest = vec![0; connection.read_u8().await.ok()?.into()];
    connection.read_exact(&mut rest).await.ok()?;
    Some((first >> 4, rest))
}

fn publication(packet: u8, is_retained: bool) -> Vec<u8> {
    let mut rest = vec![0, 18];
    rest.extend(b"a/devices/dev/down");
    rest.extend([0, packet, 0, b'0' + packet]);
    [vec![0x32 | u8::from(is_retained), rest.len() as u8], rest].concat()
}

/// Speaks MQTT 5 without shared subscriptions, and sends a retained message and another one to who subscribes. Returns
/// when both are acknowledged.
async fn serve(mut connection: TcpStream) -> Option<()> {
    let mut unacknowledged = BTreeSet::from([1, 2]);
    while !unacknowledged.is_empty() {
        let (kind, rest) = read(&mut connection).await?;
        let response = match kind {
            1 => vec![0x20, 5, 0, 0, 2, 0x2a, 0],
            4 => {
                unacknowledged.remove(&rest[1]);
                Vec::new()
            }
            8 => [vec![0x90, 4, rest[0], rest[1], 0, 1], publication(1, true), publication(2, false)].concat(),
            10 => vec![0xb0, 4, rest[0], rest[1], 0, 0],
            _ => Vec::new(),
        };
        connection.write_all(&response).await.ok()?;
    }
    Some(())
}

#[tokio::test(flavor = "multi_thread")]
async fn retained_messages_are_dropped() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (dir, (sender, mut received)) = (tempfile::tempdir().unwrap(), mpsc::unbounded_channel());
    let url = format!("mqtt://{}", listener.local_addr().unwrap());
    let settings = Remote { url, ..Remote::default() };
    let random = CountingRandom::default();
    let connection = BrokerConnection::new(&settings, "mqtt", dir.path().to_owned(), &random).unwrap();
    let subscription = connection.subscribe("+/devices/+/down", Receiver(sender), Only);
    // The first connection shows that the broker cannot share.
    while serve(listener.accept().await.unwrap().0).await.is_none() {}
    assert_eq!(received.recv().await.unwrap(), "2");
    drop(listener);
    subscription.stop().await;
}
