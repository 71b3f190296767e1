//! One connection to the broker: requests of the program on one side, packets on the other.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use link::Socket;
use rumqttc::{
    Codec, ConnectReturnCode, ConnectionError, Disconnect, Event, MqttState, Packet, PingReq, PubAck, Publish, QoS,
    Request, StateError, Subscribe, Unsubscribe,
};
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    time::{Instant, Interval, MissedTickBehavior, interval_at, timeout},
};
use tokio_util::codec::Framed;

use super::connect::{Endpoint, KEEP_ALIVE_S};

/// Maximum size of a packet that is sent or received, in bytes.
const PACKET_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of requests that wait for the connection: more than messages, downlinks and filters together.
const REQUESTS_MAX: usize = 8192;
/// Maximum number of publications that the broker has not acknowledged. More wait.
const IN_FLIGHT_MAX: u16 = 100;
/// Maximum time to wait for a connection, or for a packet to be sent.
const NETWORK_WAIT: Duration = Duration::from_secs(5);

/// A connection that the broker has accepted.
pub(super) struct Connection {
    packets: Framed<Box<dyn Socket>, Codec>,
    state: MqttState,
    requests: mpsc::Receiver<Request>,
    pings: Interval,
}

/// The program's end of a connection. It takes requests while the connection lasts.
#[derive(Clone, Debug)]
pub(super) struct Requests(mpsc::Sender<Request>);

/// A request that was not accepted, because too many wait or the connection has ended.
pub(super) type RefusedRequest = TrySendError<Request>;

impl Requests {
    pub(super) fn subscribe(&self, filter: String) -> Result<(), RefusedRequest> {
        self.0.try_send(Request::Subscribe(Subscribe::new(filter, QoS::AtLeastOnce)))
    }

    pub(super) fn unsubscribe(&self, filter: String) -> Result<(), RefusedRequest> {
        self.0.try_send(Request::Unsubscribe(Unsubscribe::new(filter)))
    }

    pub(super) fn publish(&self, topic: &str, payload: Vec<u8>) -> Result<(), RefusedRequest> {
        self.0.try_send(Request::Publish(Publish::new(topic, QoS::AtLeastOnce, payload)))
    }

    /// Acknowledges the message of a packet.
    pub(super) fn acknowledge(&self, packet: u16) -> Result<(), RefusedRequest> {
        self.0.try_send(Request::PubAck(PubAck::new(packet)))
    }

    pub(super) fn disconnect(&self) -> Result<(), RefusedRequest> {
        self.0.try_send(Request::Disconnect(Disconnect))
    }
}

impl Connection {
    pub(super) async fn open(endpoint: &Endpoint) -> Result<(Requests, Self), ConnectionError> {
        timeout(NETWORK_WAIT, Self::try_open(endpoint)).await.unwrap_or(Err(ConnectionError::NetworkTimeout))
    }

    async fn try_open(endpoint: &Endpoint) -> Result<(Requests, Self), ConnectionError> {
        let codec = Codec { max_incoming_size: PACKET_BYTES_MAX, max_outgoing_size: PACKET_BYTES_MAX };
        let mut packets = Framed::new(endpoint.connect().await?, codec);
        packets.send(Packet::Connect(endpoint.first_packet())).await.map_err(StateError::from)?;
        match packets.next().await.ok_or(StateError::ConnectionAborted)?.map_err(StateError::from)? {
            Packet::ConnAck(answer) if answer.code == ConnectReturnCode::Success => {}
            Packet::ConnAck(answer) => return Err(ConnectionError::ConnectionRefused(answer.code)),
            packet => return Err(ConnectionError::NotConnAck(packet)),
        }
        let (sender, requests) = mpsc::channel(REQUESTS_MAX);
        let period = Duration::from_secs(KEEP_ALIVE_S.into());
        let mut pings = interval_at(Instant::now() + period, period);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The program says when it has received a message.
        let state = MqttState::new(IN_FLIGHT_MAX, true);
        Ok((Requests(sender), Self { packets, state, requests, pings }))
    }

    /// The next event.
    pub(super) async fn next(&mut self) -> Result<Event, ConnectionError> {
        loop {
            if let Some(event) = self.state.events.pop_front() {
                return Ok(event);
            }
            let has_room = self.state.inflight() < IN_FLIGHT_MAX && self.state.collision.is_none();
            let packet = tokio::select! {
                received = self.packets.next() => {
                    let packet = received.ok_or(StateError::ConnectionAborted)?.map_err(StateError::from)?;
                    self.state.handle_incoming_packet(packet)?
                }
                request = self.requests.recv(), if has_room => {
                    self.state.handle_outgoing_packet(request.ok_or(ConnectionError::RequestsDone)?)?
                }
                _ = self.pings.tick() => self.state.handle_outgoing_packet(Request::PingReq(PingReq))?,
            };
            if let Some(packet) = packet {
                self.send(packet).await?;
            }
        }
    }

    async fn send(&mut self, packet: Packet) -> Result<(), ConnectionError> {
        let sent = timeout(NETWORK_WAIT, self.packets.send(packet)).await;
        Ok(sent.map_err(|_| ConnectionError::FlushTimeout)?.map_err(StateError::from)?)
    }
}
