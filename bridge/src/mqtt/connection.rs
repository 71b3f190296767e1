//! One connection to a broker, from its beginning to its end, in MQTT 5 or 3.1.1.

use std::{io, time::Duration};

use bytes::Bytes;
use rumqttc::v5::mqttbytes::v5 as packets5;
use rumqttc::{self as v4, v5};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::endpoint::Endpoint;

/// Maximum size of a packet that is received, in bytes. Events of ChirpStack have a few thousand.
pub(super) const PACKET_BYTES_MAX: u32 = 1024 * 1024;
/// The largest packet that there is, in bytes. MQTT 3.1.1 has no way to tell the broker what is too large, so larger
/// ones than [`PACKET_BYTES_MAX`] are received and dropped: otherwise the broker would send them again and again.
const PROTOCOL_PACKET_BYTES_MAX: usize = 268_435_460;
/// How many requests and events may queue up between the library and us.
const QUEUE_MAX: usize = 1024;
/// The broker closes a connection that was silent for one and a half times as long.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// How long a broker keeps a session without a connection, and what it queues for it. MQTT 3.1.1 cannot say.
const SESSION_EXPIRY_S: u32 = 24 * 60 * 60;

/// The version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    V5,
    V4,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    /// Receives up to so many messages that are not acknowledged yet. A broker keeps the session if it is told to.
    Subscriber { in_flight_max: u16, keeps_session: bool },
    /// Publishes, up to so many messages that are not confirmed yet.
    Publisher { in_flight_max: u16 },
}

/// One connection to a broker, which is made when it is created.
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) events: mpsc::Receiver<Result<Event, Lost>>,
    _driver: AbortOnDropHandle<()>,
}

/// What happens on a connection.
#[derive(Debug)]
pub(super) enum Event {
    Connected {
        has_shared_subscriptions: bool,
        packet_bytes_max: Option<u32>,
    },
    /// The broker's response to a subscription: why it was refused, if it was.
    Subscribed {
        refusal: Option<String>,
    },
    /// The broker's response to the end of a subscription.
    Unsubscribed,
    Received(Received),
    /// The next publication in order was sent as the packet of this number.
    Sent(u16),
    /// The packet of this number was confirmed, or refused for a reason.
    Confirmed {
        packet: u16,
        refusal: Option<String>,
    },
}

/// A message as it came in.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) topic: String,
    pub(super) payload: Bytes,
    /// The number to acknowledge; none if the message was sent at most once.
    pub(super) packet: Option<u16>,
    /// Whether the broker sent it before.
    pub(super) is_repeated: bool,
}

/// Why a connection ended, or was not made.
#[derive(Clone, Debug)]
pub(super) struct Lost {
    pub(super) reason: String,
    /// Whether the broker may know only another version of the protocol.
    pub(super) is_protocol_unknown: bool,
    /// Whether it said so.
    pub(super) is_version_refused: bool,
}

/// Makes requests on a connection.
#[derive(Clone, Debug)]
pub(super) enum Client {
    V5(v5::AsyncClient),
    V4(v4::AsyncClient),
}

impl Connection {
    pub(super) fn open(endpoint: &Endpoint, protocol: Protocol, role: Role) -> Self {
        let (sender, events) = mpsc::channel(QUEUE_MAX);
        let (client, driver) = match protocol {
            Protocol::V5 => {
                let (client, connection) = v5::AsyncClient::new(options5(endpoint, role), QUEUE_MAX);
                (Client::V5(client), tokio::spawn(drive5(connection, sender)))
            }
            Protocol::V4 => {
                let (client, connection) = v4::AsyncClient::new(options4(endpoint, role), QUEUE_MAX);
                (Client::V4(client), tokio::spawn(drive4(connection, sender)))
            }
        };
        Self { client, events, _driver: AbortOnDropHandle::new(driver) }
    }

    /// The next event. An error is the last one.
    pub(super) async fn next(&mut self) -> Result<Event, Lost> {
        let ended = || Err(Lost::because("the connection was closed".to_owned()));
        self.events.recv().await.unwrap_or_else(ended)
    }
}

impl Client {
    /// Requests subscriptions; whether the connection had room for the request.
    pub(super) fn subscribe(&self, filters: &[String]) -> bool {
        match self {
            Self::V5(client) => {
                let filters =
                    filters.iter().map(|filter| packets5::Filter::new(filter, v5::mqttbytes::QoS::AtLeastOnce));
                client.try_subscribe_many(filters).is_ok()
            }
            Self::V4(client) => {
                let filters =
                    filters.iter().map(|filter| v4::SubscribeFilter::new(filter.clone(), v4::QoS::AtLeastOnce));
                client.try_subscribe_many(filters).is_ok()
            }
        }
    }

    /// Requests the end of subscriptions, which the broker may not have.
    pub(super) fn unsubscribe(&self, filters: &[String]) {
        for filter in filters {
            let is_requested = match self {
                Self::V5(client) => client.try_unsubscribe(filter).is_ok(),
                Self::V4(client) => client.try_unsubscribe(filter).is_ok(),
            };
            if !is_requested {
                tracing::debug!(filter, "no room to unsubscribe");
            }
        }
    }

    /// Publishes a message that the broker has to confirm; whether the connection had room for it.
    pub(super) fn publish(&self, topic: &str, payload: Bytes) -> bool {
        match self {
            Self::V5(client) => client.try_publish(topic, v5::mqttbytes::QoS::AtLeastOnce, false, payload).is_ok(),
            Self::V4(client) => client.try_publish(topic, v4::QoS::AtLeastOnce, false, payload).is_ok(),
        }
    }

    /// Acknowledges a message. On a connection that has ended it does nothing: the broker sends the message again.
    pub(super) async fn acknowledge(&self, packet: u16) {
        // The libraries only look at the packet's number and its quality of service.
        let is_sent = match self {
            Self::V5(client) => {
                let mut message = packets5::Publish::new("", v5::mqttbytes::QoS::AtLeastOnce, Bytes::new(), None);
                message.pkid = packet;
                client.ack(&message).await.is_ok()
            }
            Self::V4(client) => {
                let mut message = v4::Publish::new("", v4::QoS::AtLeastOnce, Vec::new());
                message.pkid = packet;
                client.ack(&message).await.is_ok()
            }
        };
        if !is_sent {
            tracing::debug!(packet, "the connection ended before an acknowledgement");
        }
    }

    /// Ends the connection properly.
    pub(super) async fn disconnect(&self) {
        let is_sent = match self {
            Self::V5(client) => client.disconnect().await.is_ok(),
            Self::V4(client) => client.disconnect().await.is_ok(),
        };
        if !is_sent {
            tracing::debug!("the connection had ended already");
        }
    }
}

fn options5(endpoint: &Endpoint, role: Role) -> v5::MqttOptions {
    let mut options = v5::MqttOptions::new(&endpoint.client_id, &endpoint.url.host, endpoint.url.port);
    options.set_transport(endpoint.transport.clone()).set_keep_alive(KEEP_ALIVE).set_manual_acks(true);
    if let Some((username, password)) = endpoint.login() {
        options.set_credentials(username, password.expose());
    }
    match role {
        Role::Subscriber { in_flight_max, keeps_session } => options
            .set_clean_start(!keeps_session)
            .set_session_expiry_interval(keeps_session.then_some(SESSION_EXPIRY_S))
            .set_receive_maximum(Some(in_flight_max))
            .set_outgoing_inflight_upper_limit(1),
        Role::Publisher { in_flight_max } => {
            options.set_clean_start(true).set_outgoing_inflight_upper_limit(in_flight_max)
        }
    };
    options.set_max_packet_size(Some(PACKET_BYTES_MAX));
    options
}

fn options4(endpoint: &Endpoint, role: Role) -> v4::MqttOptions {
    let mut options = v4::MqttOptions::new(&endpoint.client_id, &endpoint.url.host, endpoint.url.port);
    options.set_transport(endpoint.transport.clone()).set_keep_alive(KEEP_ALIVE).set_manual_acks(true);
    options.set_max_packet_size(PROTOCOL_PACKET_BYTES_MAX, PACKET_BYTES_MAX as usize);
    if let Some((username, password)) = endpoint.login() {
        options.set_credentials(username, password.expose());
    }
    match role {
        Role::Subscriber { keeps_session, .. } => options.set_clean_session(!keeps_session),
        Role::Publisher { in_flight_max } => options.set_clean_session(true).set_inflight(in_flight_max),
    };
    options
}

async fn drive5(mut connection: v5::EventLoop, events: mpsc::Sender<Result<Event, Lost>>) {
    loop {
        let event = match connection.poll().await {
            Ok(event) => event5(event).map(Ok),
            Err(error) => Some(Err(Lost::from5(&error))),
        };
        let is_last = matches!(event, Some(Err(_)));
        if let Some(event) = event
            && (events.send(event).await.is_err() || is_last)
        {
            return;
        }
    }
}

async fn drive4(mut connection: v4::EventLoop, events: mpsc::Sender<Result<Event, Lost>>) {
    loop {
        let event = match connection.poll().await {
            Ok(event) => event4(event).map(Ok),
            Err(error) => Some(Err(Lost::from4(&error))),
        };
        let is_last = matches!(event, Some(Err(_)));
        if let Some(event) = event
            && (events.send(event).await.is_err() || is_last)
        {
            return;
        }
    }
}

fn event5(event: v5::Event) -> Option<Event> {
    use packets5::{Packet, PubAckReason, SubscribeReasonCode};
    Some(match event {
        v5::Event::Incoming(Packet::ConnAck(response)) => {
            let properties = response.properties;
            let shared = properties.as_ref().and_then(|properties| properties.shared_subscription_available);
            let packet_bytes_max = properties.and_then(|properties| properties.max_packet_size);
            Event::Connected { has_shared_subscriptions: shared != Some(0), packet_bytes_max }
        }
        v5::Event::Incoming(Packet::SubAck(response)) => {
            let refused = response.return_codes.iter().find(|code| !matches!(code, SubscribeReasonCode::Success(_)));
            Event::Subscribed { refusal: refused.map(|code| format!("{code:?}")) }
        }
        v5::Event::Incoming(Packet::UnsubAck(_)) => Event::Unsubscribed,
        v5::Event::Incoming(Packet::Publish(message)) => Event::Received(Received {
            topic: String::from_utf8_lossy(&message.topic).into_owned(),
            packet: (message.qos != v5::mqttbytes::QoS::AtMostOnce).then_some(message.pkid),
            payload: message.payload,
            is_repeated: message.dup,
        }),
        v5::Event::Incoming(Packet::PubAck(response)) => {
            let is_accepted = matches!(response.reason, PubAckReason::Success | PubAckReason::NoMatchingSubscribers);
            let refusal = (!is_accepted).then(|| format!("{:?}", response.reason));
            Event::Confirmed { packet: response.pkid, refusal }
        }
        v5::Event::Outgoing(v4::Outgoing::Publish(packet)) => Event::Sent(packet),
        _ => return None,
    })
}

fn event4(event: v4::Event) -> Option<Event> {
    use v4::Packet;
    Some(match event {
        v4::Event::Incoming(Packet::ConnAck(_)) => {
            Event::Connected { has_shared_subscriptions: false, packet_bytes_max: Some(PACKET_BYTES_MAX) }
        }
        v4::Event::Incoming(Packet::SubAck(response)) => {
            let is_refused = response.return_codes.contains(&v4::SubscribeReasonCode::Failure);
            Event::Subscribed { refusal: is_refused.then(|| "Failure".to_owned()) }
        }
        v4::Event::Incoming(Packet::UnsubAck(_)) => Event::Unsubscribed,
        v4::Event::Incoming(Packet::Publish(message)) => Event::Received(Received {
            topic: message.topic,
            packet: (message.qos != v4::QoS::AtMostOnce).then_some(message.pkid),
            payload: message.payload,
            is_repeated: message.dup,
        }),
        v4::Event::Incoming(Packet::PubAck(response)) => Event::Confirmed { packet: response.pkid, refusal: None },
        v4::Event::Outgoing(v4::Outgoing::Publish(packet)) => Event::Sent(packet),
        _ => return None,
    })
}

impl Lost {
    pub(super) fn because(reason: String) -> Self {
        Self { reason, is_protocol_unknown: false, is_version_refused: false }
    }

    fn from5(error: &v5::ConnectionError) -> Self {
        use packets5::ConnectReturnCode as Code;
        use v5::{ConnectionError as Error, StateError};
        let is_protocol_unknown = match error {
            Error::ConnectionRefused(code) => {
                matches!(code, Code::UnsupportedProtocolVersion | Code::RefusedProtocolVersion)
            }
            Error::MqttState(StateError::Deserialization(_) | StateError::ConnectionAborted) => true,
            Error::Io(error) | Error::MqttState(StateError::Io(error)) => is_closed_by_peer(error),
            _ => false,
        };
        let reason = match error {
            Error::ConnectionRefused(code) => refusal(&format!("{code:?}")),
            error => error.to_string(),
        };
        let is_version_refused = is_protocol_unknown && matches!(error, Error::ConnectionRefused(_));
        Self { reason, is_protocol_unknown, is_version_refused }
    }

    fn from4(error: &v4::ConnectionError) -> Self {
        use v4::ConnectionError as Error;
        let reason = match error {
            Error::ConnectionRefused(code) => refusal(&format!("{code:?}")),
            error => error.to_string(),
        };
        Self::because(reason)
    }
}

/// Brokers that do not know a version may just close the connection.
fn is_closed_by_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted
    )
}

fn refusal(code: &str) -> String {
    let advice = match code {
        "BadUserNamePassword" | "NotAuthorized" => ": check the user and the password",
        _ => "",
    };
    format!("the broker refused the connection ({code}){advice}")
}
