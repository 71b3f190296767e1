//! An application's uplinks and events as they arrive, and downlinks to its devices, over MQTT.

mod address;
mod connection;

use std::{collections::VecDeque, time::Duration};

use rumqttc::{
    AsyncClient, ConnectReturnCode, ConnectionError, Event, MqttOptions, Packet, QoS, SubscribeFilter,
    SubscribeReasonCode, valid_filter,
};
use tokio::{sync::mpsc, time::timeout};
use types::{AppId, Credential, DevId, Downlink, Kind};

pub use self::connection::Connection;
pub(crate) use self::connection::{RETRY_DELAY_MAX, retries};
use crate::{Error, Result, Trust};

/// Maximum size of a packet that is sent or received, in bytes.
const MQTT_PACKET_BYTES_MAX: usize = 1024 * 1024;

/// How many received messages may queue up before the client stops reading.
const MESSAGE_QUEUE_MAX: usize = 1000;

/// How long the first connection, and each acknowledgement, may take.
const RESPONSE_WAIT: Duration = Duration::from_secs(10);

const KEEP_ALIVE: Duration = Duration::from_secs(30);

pub(crate) const SERVICE: &str = "MQTT broker";

/// A message that was published for an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicMessage {
    /// For example `my-app/devices/my-device/up`.
    pub topic: String,
    /// JSON.
    pub payload: Vec<u8>,
}

/// A connection to the messages of one application.
///
/// When the connection breaks, the client reconnects and subscribes again. Messages that are published in between are
/// lost, as is usual for MQTT clients without a persistent session. Only a refused credential or subscription is an
/// error.
#[derive(Debug)]
pub struct MqttClient {
    client: AsyncClient,
    events: mpsc::Receiver<ClientEvent>,
    address: String,
    app_id: AppId,
    filters: Vec<String>,
    /// Messages that arrived while the client waited for an acknowledgement.
    deferred: VecDeque<TopicMessage>,
}

/// What the connection's task reports.
#[derive(Debug)]
enum ClientEvent {
    Connected,
    Subscribed { granted: bool },
    Acknowledged,
    Received(TopicMessage),
    Failed(ConnectionError),
}

impl MqttClient {
    /// Connects to an address like `localhost:1883`, in the form that a handler announces.
    ///
    /// A broker at an `mqtts://` address must have a certificate that this machine trusts.
    pub async fn connect(address: &str, app_id: &AppId, credential: &Credential) -> Result<Self> {
        Self::connect_with_trust(address, &Trust::of_mqtt(address), app_id, credential).await
    }

    /// Connects to a broker whose certificate `trust` accepts.
    pub async fn connect_with_trust(
        address: &str,
        trust: &Trust,
        app_id: &AppId,
        credential: &Credential,
    ) -> Result<Self> {
        let options = options(address, trust, app_id, credential)?;
        let (client, connection) = Connection::new(options, MESSAGE_QUEUE_MAX, None);
        let (sender, events) = mpsc::channel(MESSAGE_QUEUE_MAX);
        tokio::spawn(run(connection, sender));
        let mut this = Self {
            client,
            events,
            address: address.to_owned(),
            app_id: app_id.clone(),
            filters: Vec::new(),
            deferred: VecDeque::new(),
        };
        match this.next_event().await? {
            ClientEvent::Failed(error) => Err(connection_error(address, error)),
            _ => Ok(this),
        }
    }

    /// Subscribes to an MQTT filter such as `my-app/devices/+/up`.
    pub async fn subscribe(&mut self, filter: &str) -> Result<()> {
        if !valid_filter(filter) {
            return Err(invalid(format!("filter `{filter}` not valid: must be like my-app/devices/+/up")));
        }
        self.filters.push(filter.to_owned());
        self.send_subscribe(vec![filter.to_owned()])?;
        loop {
            match self.next_event().await? {
                ClientEvent::Subscribed { granted: true } => return Ok(()),
                ClientEvent::Subscribed { granted: false } => {
                    self.filters.pop();
                    return Err(denied(format!("the subscription to `{filter}` was refused")));
                }
                event => self.defer(event)?,
            }
        }
    }

    /// Publishes a downlink; returns when the broker has acknowledged it.
    ///
    /// MQTT 3.1.1 cannot report that the credential lacks the right to send downlinks: the broker acknowledges such a
    /// message and drops it.
    pub async fn send(&mut self, dev_id: &DevId, downlink: &Downlink) -> Result<()> {
        let topic = format!("{}/devices/{dev_id}/down", self.app_id);
        let payload = serde_json::to_vec(downlink).map_err(|error| invalid(format!("downlink not valid: {error}")))?;
        self.client.try_publish(topic, QoS::AtLeastOnce, false, payload).map_err(|_| self.not_sent())?;
        loop {
            match self.next_event().await? {
                ClientEvent::Acknowledged => return Ok(()),
                event => self.defer(event)?,
            }
        }
    }

    /// Waits for the next message.
    pub async fn next(&mut self) -> Result<TopicMessage> {
        if let Some(message) = self.deferred.pop_front() {
            return Ok(message);
        }
        loop {
            match self.events.recv().await.ok_or_else(|| self.ended())? {
                ClientEvent::Received(message) => return Ok(message),
                event => self.recover(event)?,
            }
        }
    }

    /// Handles an event while the client waits for an acknowledgement.
    fn defer(&mut self, event: ClientEvent) -> Result<()> {
        match event {
            ClientEvent::Received(message) if self.deferred.len() < MESSAGE_QUEUE_MAX => {
                self.deferred.push_back(message);
                Ok(())
            }
            ClientEvent::Received(_) => Err(self.queue_full()),
            event => self.recover(event),
        }
    }

    /// Subscribes again after a reconnection; returns the errors that a reconnection cannot mend.
    fn recover(&mut self, event: ClientEvent) -> Result<()> {
        match event {
            ClientEvent::Connected => self.send_subscribe(self.filters.clone()),
            ClientEvent::Subscribed { granted: false } => {
                Err(denied("a subscription was refused after a reconnection".to_owned()))
            }
            ClientEvent::Failed(error) if is_permanent(&error) => Err(connection_error(&self.address, error)),
            ClientEvent::Failed(error) => {
                tracing::debug!(%error, address = self.address, "no connection to the MQTT broker");
                Ok(())
            }
            ClientEvent::Subscribed { .. } | ClientEvent::Acknowledged | ClientEvent::Received(_) => Ok(()),
        }
    }

    fn send_subscribe(&self, filters: Vec<String>) -> Result<()> {
        if filters.is_empty() {
            return Ok(());
        }
        let filters = filters.into_iter().map(|filter| SubscribeFilter::new(filter, QoS::AtMostOnce));
        self.client.try_subscribe_many(filters).map_err(|_| self.not_sent())
    }

    async fn next_event(&mut self) -> Result<ClientEvent> {
        match timeout(RESPONSE_WAIT, self.events.recv()).await {
            Ok(event) => event.ok_or_else(|| self.ended()),
            Err(_) => Err(Error::Timeout { service: SERVICE, address: self.address.clone() }),
        }
    }

    /// Why a request was not queued. The queue is full only if the connection has been down for many requests.
    fn not_sent(&self) -> Error {
        if self.events.is_closed() { self.ended() } else { self.queue_full() }
    }

    fn queue_full(&self) -> Error {
        Error::QueueFull { service: SERVICE, address: self.address.clone(), messages_max: MESSAGE_QUEUE_MAX }
    }

    fn ended(&self) -> Error {
        Error::Ended { service: SERVICE, address: self.address.clone() }
    }
}

/// Keeps the connection up until the client is dropped or refused.
async fn run(mut connection: Connection, sender: mpsc::Sender<ClientEvent>) {
    loop {
        let polled = tokio::select! {
            polled = connection.poll() => polled,
            () = sender.closed() => return,
        };
        let Some(event) = client_event(polled) else { continue };
        let is_last = matches!(&event, ClientEvent::Failed(error) if is_permanent(error));
        if sender.send(event).await.is_err() || is_last {
            return;
        }
    }
}

fn client_event(polled: std::result::Result<Event, ConnectionError>) -> Option<ClientEvent> {
    match polled {
        Ok(Event::Incoming(Packet::ConnAck(_))) => Some(ClientEvent::Connected),
        Ok(Event::Incoming(Packet::SubAck(response))) => {
            Some(ClientEvent::Subscribed { granted: !response.return_codes.contains(&SubscribeReasonCode::Failure) })
        }
        Ok(Event::Incoming(Packet::PubAck(_))) => Some(ClientEvent::Acknowledged),
        Ok(Event::Incoming(Packet::Publish(message))) => {
            Some(ClientEvent::Received(TopicMessage { topic: message.topic, payload: message.payload.into() }))
        }
        Ok(_) => None,
        Err(error) => Some(ClientEvent::Failed(error)),
    }
}

/// Why there is no connection, for callers.
pub(crate) fn connection_error(address: &str, error: ConnectionError) -> Error {
    match error {
        ConnectionError::ConnectionRefused(code) => Error::Refused {
            kind: if is_permanent_code(code) { Kind::Unauthenticated } else { Kind::Unavailable },
            message: match code {
                ConnectReturnCode::BadUserNamePassword => {
                    "the MQTT broker does not accept this application and access key".to_owned()
                }
                ConnectReturnCode::NotAuthorized => {
                    "the MQTT broker needs an access key with the right `messages:up:r`".to_owned()
                }
                code => format!("the MQTT broker refused the connection: {code:?}"),
            },
            retry_after: None,
        },
        error => Error::Unreachable { service: SERVICE, address: address.to_owned(), source: error.into() },
    }
}

/// Whether a reconnection would fail in the same way.
pub(crate) fn is_permanent(error: &ConnectionError) -> bool {
    matches!(error, ConnectionError::ConnectionRefused(code) if is_permanent_code(*code))
}

/// Whether the broker refused the client, rather than being out of service itself.
fn is_permanent_code(code: ConnectReturnCode) -> bool {
    code != ConnectReturnCode::ServiceUnavailable
}

/// The options of a connection that has no session.
pub(crate) fn options(address: &str, trust: &Trust, app_id: &AppId, credential: &Credential) -> Result<MqttOptions> {
    let (host, port) = address::read(address, trust)?;
    let password = match credential {
        Credential::Token(token) => token.expose(),
        Credential::Key(key) => key.expose(),
    };
    // With an empty client identifier the broker assigns a unique one.
    let mut options = MqttOptions::new("", host, port);
    options
        .set_keep_alive(KEEP_ALIVE)
        .set_clean_session(true)
        .set_credentials(app_id.as_str(), password)
        .set_max_packet_size(MQTT_PACKET_BYTES_MAX, MQTT_PACKET_BYTES_MAX)
        .set_transport(address::transport(trust)?);
    Ok(options)
}

fn invalid(message: String) -> Error {
    Error::Refused { kind: Kind::Invalid, message, retry_after: None }
}

fn denied(message: String) -> Error {
    Error::Refused { kind: Kind::Denied, message, retry_after: None }
}
