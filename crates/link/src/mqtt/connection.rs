//! One connection to a broker, in MQTT 5 or 3.1.1. Packets are written and read in batches: a system call for each would
//! cost more than everything else that is done for a message.

mod arrivals;
mod writer;

use std::{collections::VecDeque, pin::pin, time::Duration};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, ReadHalf, split},
    sync::mpsc::Sender,
    time::timeout,
};

use self::{arrivals::Settled, writer::Writer};
use super::{
    endpoint::Endpoint,
    lost::Lost,
    packet::{Event, Role},
    protocol::Protocol,
};
use crate::{Socket, connect_socket};

/// Maximum time to wait for a broker to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time to wait for the last acknowledgements to be sent.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Least free space in the buffer for one read, in bytes.
const READ_BYTES_MIN: usize = 4 * 1024;
const READ_BYTES_MAX: usize = 64 * 1024;

/// An accepted connection. Futures of its methods may be dropped at any time.
pub struct BrokerConnection {
    reader: ReadHalf<Box<dyn Socket>>,
    input: BytesMut,
    events: VecDeque<Event>,
    writer: Writer,
    protocol: Protocol,
}

/// Acknowledges a message of a connection. If it is dropped instead, the broker sends the message again on the next one,
/// and on this one no other message waits for it.
#[derive(Debug)]
pub struct Acknowledger {
    number: u64,
    packet: u16,
    sender: Sender<Settled>,
    is_settled: bool,
    /// True if the message is also acknowledged when this is dropped.
    is_done_when_dropped: bool,
}

impl Acknowledger {
    /// Acknowledges the message, behind those that came before it. On a connection that has ended it does nothing: the
    /// broker sends the message again.
    pub(super) async fn acknowledge(mut self) {
        if self.sender.send(self.settled(true)).await.is_err() {
            tracing::debug!(packet = self.packet, "the connection ended before an acknowledgement");
        }
        self.is_settled = true;
    }

    /// Returns one that acknowledges the message when it is dropped. It is for [`Role::Program`].
    #[must_use]
    pub fn when_dropped(mut self) -> Self {
        self.is_done_when_dropped = true;
        self
    }

    fn settled(&self, is_done: bool) -> Settled {
        Settled { number: self.number, packet: self.packet, is_done }
    }
}

impl Drop for Acknowledger {
    fn drop(&mut self) {
        if !self.is_settled {
            // Where there is no room for this, the message is passed over a little later.
            _ = self.sender.try_send(self.settled(self.is_done_when_dropped));
        }
    }
}

impl BrokerConnection {
    /// Connects; the first event is [`Event::Connected`].
    pub async fn open(endpoint: &Endpoint, protocol: Protocol, role: Role) -> Result<Self, Lost> {
        let opening = timeout(CONNECT_TIMEOUT, Self::try_open(endpoint, protocol, role));
        opening.await.unwrap_or_else(|_| Err(Lost::because("the broker does not answer")))
    }

    async fn try_open(endpoint: &Endpoint, protocol: Protocol, role: Role) -> Result<Self, Lost> {
        let Endpoint { url, tls, .. } = endpoint;
        let socket = connect_socket(&url.host, url.port, tls.as_ref()).await;
        let socket = socket.map_err(|error| Lost::io(error, protocol))?;
        Self::over(socket, endpoint, protocol, role).await
    }

    async fn over(socket: Box<dyn Socket>, endpoint: &Endpoint, protocol: Protocol, role: Role) -> Result<Self, Lost> {
        let (reader, writer) = split(socket);
        let mut connection = Self {
            reader,
            input: BytesMut::with_capacity(READ_BYTES_MAX),
            events: VecDeque::new(),
            writer: Writer::new(writer, protocol, role),
            protocol,
        };
        protocol.connect(endpoint, role, &mut connection.writer.output)?;
        match connection.next().await? {
            Event::Connected(connected) => {
                connection.writer.ping_every(Duration::from_secs(connected.keep_alive_s.into()));
                connection.events.push_front(Event::Connected(connected));
                Ok(connection)
            }
            _ => Err(Lost::unreadable("it is no response to the connection", protocol)),
        }
    }

    /// The next event.
    pub async fn next(&mut self) -> Result<Event, Lost> {
        loop {
            if let Some(event) = self.next_if_read() {
                return Ok(event);
            }
            self.input.reserve(READ_BYTES_MIN);
            tokio::select! {
                read = self.reader.read_buf(&mut self.input) => match read {
                    Ok(0) => return Err(Lost::closed(self.protocol)),
                    Ok(_) => self.decode()?,
                    Err(error) => return Err(Lost::io(error, self.protocol)),
                },
                written = self.writer.write() => written?,
            }
        }
    }

    /// The next event if it has been read.
    pub(super) fn next_if_read(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Sends the output without reading anything, until `done`.
    pub(super) async fn write_until<T>(&mut self, done: impl Future<Output = T>) -> Result<T, Lost> {
        let mut done = pin!(done);
        loop {
            // The broker's answer is not read.
            self.writer.is_pinged = false;
            tokio::select! {
                done = &mut done => return Ok(done),
                written = self.writer.write() => written?,
            }
        }
    }

    fn decode(&mut self) -> Result<(), Lost> {
        while let Some(event) = self.protocol.read(&mut self.input)? {
            self.writer.is_pinged = false;
            self.events.push_back(event);
        }
        Ok(())
    }

    /// Subscribes in a packet of this number.
    pub fn subscribe(&mut self, packet: u16, filters: &[String]) -> Result<(), Lost> {
        self.protocol.subscribe(packet, filters, &mut self.writer.output)
    }

    /// Ends subscriptions, which the broker may not have. It answers when it has read the acknowledgements so far.
    pub fn unsubscribe(&mut self, packet: u16, filters: &[String]) -> Result<(), Lost> {
        self.writer.take_settled();
        self.protocol.unsubscribe(packet, filters, &mut self.writer.output)
    }

    /// Returns true if the buffer of unsent bytes has room for another message.
    pub fn has_room(&self) -> bool {
        self.writer.has_room()
    }

    /// Publishes a message that the broker has to confirm.
    pub fn publish(&mut self, packet: u16, topic: &str, payload: &Bytes) {
        self.protocol.publish(packet, topic, payload, &mut self.writer.output);
    }

    /// Notes that a message has come, which is to be acknowledged in its turn.
    pub fn arrived(&mut self, packet: u16) -> Acknowledger {
        let number = self.writer.arrivals.add(packet);
        let sender = self.writer.settled_sender.clone();
        Acknowledger { number, packet, sender, is_settled: false, is_done_when_dropped: false }
    }

    /// Ends the connection behind everything that is to be sent, and waits until the broker has read it.
    pub async fn disconnect(mut self) {
        let end = async {
            self.writer.disconnect().await?;
            while self.next().await.is_ok() {}
            Ok::<_, Lost>(())
        };
        if let Ok(Err(Lost { reason, .. })) = timeout(DISCONNECT_TIMEOUT, end).await {
            tracing::debug!(reason, "the connection had ended already");
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncWriteExt, DuplexStream},
        time::{Instant, sleep},
    };

    use super::{super::packet, arrivals::HELD_MAX, writer::LOOK_INTERVAL, *};
    use crate::Remote;

    const CONNACK: [u8; 4] = [0x20, 2, 0, 0];
    const PINGRESP: [u8; 2] = [0xd0, 0];
    const KEEP_ALIVE: Duration = Duration::from_secs(packet::KEEP_ALIVE_S as u64);

    /// A connection with MQTT 3.1.1, and the broker's end of it.
    async fn connect() -> (BrokerConnection, DuplexStream) {
        let settings = Remote { url: "mqtt://localhost".into(), ..Remote::default() };
        let endpoint = Endpoint::new(&settings, "mqtt", "me".into()).unwrap();
        let (ours, mut broker) = tokio::io::duplex(1024);
        let accept = async {
            assert_eq!(read(&mut broker).await[0], 0x10);
            broker.write_all(&CONNACK).await.unwrap();
        };
        let role = Role::Subscriber { in_flight_max: 10, keeps_session: true };
        let (connection, ()) =
            tokio::join!(BrokerConnection::over(Box::new(ours), &endpoint, Protocol::V4, role), accept);
        let mut connection = connection.unwrap();
        assert!(matches!(connection.next().await, Ok(Event::Connected(_))));
        (connection, broker)
    }

    async fn read(broker: &mut DuplexStream) -> Vec<u8> {
        let mut bytes = Vec::new();
        broker.read_buf(&mut bytes).await.unwrap();
        bytes
    }

    /// Returns the reason why a connection ends on which nothing but pings is answered.
    async fn reason(connection: &mut BrokerConnection) -> String {
        loop {
            match connection.next().await {
                Ok(event) => assert!(matches!(event, Event::Pong), "{event:?}"),
                Err(lost) => return lost.reason,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_broker_that_answers_pings_keeps_its_connection() {
        let (mut connection, mut broker) = connect().await;
        tokio::spawn(async move {
            for _ in 0..10 {
                assert_eq!(read(&mut broker).await, [0xc0, 0]);
                broker.write_all(&PINGRESP).await.unwrap();
            }
        });
        assert_eq!(reason(&mut connection).await, "the broker closed the connection");
    }

    #[tokio::test(start_paused = true)]
    async fn a_broker_that_freezes_loses_its_connection() {
        let (mut connection, _broker) = connect().await;
        assert_eq!(reason(&mut connection).await, "the broker no longer answers pings");
    }

    /// Its buffers are full in the middle of a packet.
    #[tokio::test(start_paused = true)]
    async fn a_broker_that_stops_reading_loses_its_connection() {
        let (mut connection, _broker) = connect().await;
        while connection.has_room() {
            connection.publish(1, "a", &Bytes::from_static(&[0; 1000]));
        }
        assert_eq!(reason(&mut connection).await, "the broker no longer answers pings");
    }

    #[tokio::test(start_paused = true)]
    async fn half_a_packet_is_not_received() {
        let (mut connection, mut broker) = connect().await;
        broker.write_all(&[0x32, 10, 0, 1, b'a', 0]).await.unwrap();
        drop(broker);
        assert_eq!(reason(&mut connection).await, "the broker closed the connection");
    }

    /// Work on a message may take long, and the broker's packets are not read meanwhile.
    #[tokio::test(start_paused = true)]
    async fn a_busy_bridge_keeps_its_connection() {
        let (mut connection, broker) = connect().await;
        connection.write_until(sleep(KEEP_ALIVE * 10)).await.unwrap();
        drop(broker);
        assert!(connection.next().await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn acknowledgements_wait_for_a_broker_that_does_not_read() {
        let (mut connection, mut broker) = connect().await;
        let messages = (0..50_000_u16).map(|packet| connection.arrived(packet)).collect::<Vec<_>>();
        let mut acknowledged = tokio::spawn(async move {
            for message in messages {
                message.acknowledge().await;
            }
        });
        let stalled = connection.write_until(sleep(KEEP_ALIVE)).await;
        assert!(
            stalled.is_ok()
                && !acknowledged.is_finished()
                && connection.writer.output.len() < 2 * writer::UNSENT_BYTES_MAX
        );
        tokio::spawn(async move { while !read(&mut broker).await.is_empty() {} });
        assert!(connection.write_until(&mut acknowledged).await.unwrap().is_ok());
    }

    /// The packets of the next acknowledgements that the broker gets.
    async fn acknowledged<const N: usize>(connection: &mut BrokerConnection, broker: &mut DuplexStream) -> [u16; N] {
        let mut packets = [[0; 4]; N];
        for packet in &mut packets {
            connection.write_until(broker.read_exact(packet)).await.unwrap().unwrap();
        }
        packets.map(|[kind, length, high, low]| {
            assert_eq!([kind, length], [0x40, 2]);
            u16::from_be_bytes([high, low])
        })
    }

    #[tokio::test(start_paused = true)]
    async fn acknowledgements_leave_in_the_order_of_what_came() {
        let (mut connection, mut broker) = connect().await;
        let [first, second, third] = [7, 3, 9].map(|packet| connection.arrived(packet));
        for message in [third, second, first] {
            message.acknowledge().await;
        }
        assert_eq!(acknowledged(&mut connection, &mut broker).await, [7, 3, 9]);
    }

    #[tokio::test(start_paused = true)]
    async fn messages_do_not_wait_for_one_that_is_given_up() {
        let (mut connection, mut broker) = connect().await;
        let [first, second, third] = [7, 3, 9].map(|packet| connection.arrived(packet));
        second.acknowledge().await;
        drop(first);
        assert_eq!(acknowledged(&mut connection, &mut broker).await, [3]);
        third.acknowledge().await;
        assert_eq!(acknowledged(&mut connection, &mut broker).await, [9]);
    }

    /// A broker that sends few at once would send no more.
    #[tokio::test(start_paused = true)]
    async fn a_message_in_progress_does_not_hold_back_others_for_ever() {
        let (mut connection, mut broker) = connect().await;
        let [first, second, third] = [7, 3, 9].map(|packet| connection.arrived(packet));
        let done = Instant::now();
        third.acknowledge().await;
        assert_eq!(acknowledged(&mut connection, &mut broker).await, [9]);
        assert!((HELD_MAX..=HELD_MAX + LOOK_INTERVAL).contains(&done.elapsed()));
        first.acknowledge().await;
        second.acknowledge().await;
        assert_eq!(acknowledged(&mut connection, &mut broker).await, [7, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_held_is_acknowledged_when_the_connection_ends() {
        let (mut connection, mut broker) = connect().await;
        let [_first, second, third] = [7, 3, 9].map(|packet| connection.arrived(packet));
        third.acknowledge().await;
        second.acknowledge().await;
        let ended = tokio::spawn(connection.disconnect());
        let mut sent = [0; 10];
        broker.read_exact(&mut sent).await.unwrap();
        assert_eq!(sent, [0x40, 2, 0, 3, 0x40, 2, 0, 9, 0xe0, 0]);
        drop(broker);
        ended.await.unwrap();
    }
}
