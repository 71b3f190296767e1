//! Data: messages of an application as they arrive, over MQTT.

use std::{collections::VecDeque, time::Duration};

use rumqttc::{
    AsyncClient, ConnectReturnCode, ConnectionError, Event, EventLoop, MqttOptions, Packet, QoS, SubscribeFilter,
    SubscribeReasonCode, valid_filter,
};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use types::{AppId, Credential, Kind};

use crate::{Error, Result};

/// The largest message that is taken.
const PACKET_BYTES_MAX: usize = 1024 * 1024;

/// How many messages may wait to be read; beyond that the broker has to wait.
const QUEUE_MAX: usize = 1000;

/// How long the first connection, and the answer to a subscription, may take.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// The wait after the first failure; each further one doubles it, up to the longest.
const RETRY_WAIT: Duration = Duration::from_millis(100);
const RETRY_WAIT_MAX: Duration = Duration::from_secs(30);

const SERVICE: &str = "MQTT broker";

/// A message from the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Like `my-app/devices/my-device/up`.
    pub topic: String,
    /// JSON.
    pub payload: Vec<u8>,
}

/// A listener to the messages of one application.
///
/// A connection that breaks is made again, with its subscriptions; messages of the meantime are lost, as MQTT has it
/// for clients that keep nothing. Only a credential or a subscription that is refused is an error.
#[derive(Debug)]
pub struct DataClient {
    client: AsyncClient,
    events: mpsc::Receiver<Happening>,
    address: String,
    filters: Vec<String>,
    /// What arrived while an answer was waited for.
    early: VecDeque<Message>,
}

/// What the connection reports.
#[derive(Debug)]
enum Happening {
    Connected,
    Subscribed { granted: bool },
    Arrived(Message),
    Failed(ConnectionError),
}

impl DataClient {
    /// Connects to an address like `localhost:1883`, as the handler announces it.
    pub async fn connect(address: &str, app_id: &AppId, credential: &Credential) -> Result<Self> {
        let options = options(address, app_id, credential)?;
        let (client, events) = AsyncClient::new(options, QUEUE_MAX);
        let (report, reports) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(keep(events, report));
        let mut this =
            Self { client, events: reports, address: address.to_owned(), filters: Vec::new(), early: VecDeque::new() };
        match this.answer().await? {
            Happening::Failed(error) => Err(this.failed(error)),
            _ => Ok(this),
        }
    }

    /// Asks for messages that match an MQTT filter, like `my-app/devices/+/up`.
    pub async fn subscribe(&mut self, filter: &str) -> Result<()> {
        if !valid_filter(filter) {
            return Err(Error::Refused {
                kind: Kind::Invalid,
                message: format!("filter `{filter}` not valid: must be like my-app/devices/+/up"),
                retry_after: None,
            });
        }
        self.filters.push(filter.to_owned());
        self.ask(vec![filter.to_owned()])?;
        loop {
            match self.answer().await? {
                Happening::Subscribed { granted: true } => return Ok(()),
                Happening::Subscribed { granted: false } => {
                    self.filters.pop();
                    return Err(refused(format!("the subscription to `{filter}` was refused")));
                }
                Happening::Arrived(message) if self.early.len() < QUEUE_MAX => self.early.push_back(message),
                Happening::Arrived(_) => return Err(self.silent()),
                happening => self.recover(happening)?,
            }
        }
    }

    /// The next message, however long it takes.
    pub async fn next(&mut self) -> Result<Message> {
        if let Some(message) = self.early.pop_front() {
            return Ok(message);
        }
        loop {
            match self.events.recv().await.ok_or_else(|| self.silent())? {
                Happening::Arrived(message) => return Ok(message),
                happening => self.recover(happening)?,
            }
        }
    }

    /// Subscribes again after a reconnection; says what cannot be mended.
    fn recover(&mut self, happening: Happening) -> Result<()> {
        match happening {
            Happening::Connected => self.ask(self.filters.clone()),
            Happening::Subscribed { granted: false } => {
                Err(refused("a subscription was refused after the connection was made again".to_owned()))
            }
            Happening::Failed(error) if is_final(&error) => Err(self.failed(error)),
            Happening::Failed(error) => {
                tracing::debug!(%error, address = self.address, "no connection to the MQTT broker");
                Ok(())
            }
            Happening::Subscribed { .. } | Happening::Arrived(_) => Ok(()),
        }
    }

    fn ask(&self, filters: Vec<String>) -> Result<()> {
        if filters.is_empty() {
            return Ok(());
        }
        let filters = filters.into_iter().map(|filter| SubscribeFilter::new(filter, QoS::AtMostOnce));
        // The queue is as long as messages may wait; whoever fills it with requests gets no answers.
        self.client.try_subscribe_many(filters).map_err(|_| self.silent())
    }

    async fn answer(&mut self) -> Result<Happening> {
        match timeout(ANSWER_WAIT, self.events.recv()).await {
            Ok(Some(happening)) => Ok(happening),
            Ok(None) | Err(_) => Err(self.silent()),
        }
    }

    fn silent(&self) -> Error {
        Error::Timeout { service: SERVICE, address: self.address.clone() }
    }

    fn failed(&self, error: ConnectionError) -> Error {
        match error {
            ConnectionError::ConnectionRefused(code) => Error::Refused {
                kind: if is_verdict(code) { Kind::Unauthenticated } else { Kind::Unavailable },
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
            error => Error::Unreachable { service: SERVICE, address: self.address.clone(), source: error.into() },
        }
    }
}

fn options(address: &str, app_id: &AppId, credential: &Credential) -> Result<MqttOptions> {
    let parts = address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = parts.filter(|(host, _)| !host.is_empty() && !host.contains('/')).ok_or_else(|| {
        Error::Address { address: address.to_owned(), expected: "<host>:<port>, like localhost:1883" }
    })?;
    let password = match credential {
        Credential::Token(token) => token.expose(),
        Credential::Key(key) => key.expose(),
    };
    // Without a name of its own a client never meets another of the same name.
    let mut options = MqttOptions::new("", host, port);
    options
        .set_keep_alive(KEEP_ALIVE)
        .set_clean_session(true)
        .set_credentials(app_id.as_str(), password)
        .set_max_packet_size(PACKET_BYTES_MAX, PACKET_BYTES_MAX);
    Ok(options)
}

/// Keeps the connection up and reports what happens, until nobody listens or nothing helps any more.
async fn keep(mut events: EventLoop, report: mpsc::Sender<Happening>) {
    let mut network = events.network_options();
    network.set_tcp_nodelay(true);
    events.set_network_options(network);
    let mut wait = RETRY_WAIT;
    loop {
        let polled = tokio::select! {
            polled = events.poll() => polled,
            () = report.closed() => return,
        };
        let failed = polled.is_err();
        let Some(happening) = happening(polled) else { continue };
        let is_final = matches!(&happening, Happening::Failed(error) if is_final(error));
        if matches!(happening, Happening::Connected) {
            wait = RETRY_WAIT;
        }
        if report.send(happening).await.is_err() || is_final {
            return;
        }
        if failed {
            sleep(wait).await;
            wait = (wait * 2).min(RETRY_WAIT_MAX);
        }
    }
}

fn happening(polled: std::result::Result<Event, ConnectionError>) -> Option<Happening> {
    match polled {
        Ok(Event::Incoming(Packet::ConnAck(_))) => Some(Happening::Connected),
        Ok(Event::Incoming(Packet::SubAck(answer))) => {
            let granted = answer.return_codes.iter().all(|code| *code != SubscribeReasonCode::Failure);
            Some(Happening::Subscribed { granted })
        }
        Ok(Event::Incoming(Packet::Publish(message))) => {
            Some(Happening::Arrived(Message { topic: message.topic, payload: message.payload.into() }))
        }
        Ok(_) => None,
        Err(error) => Some(Happening::Failed(error)),
    }
}

/// Whether trying again cannot help.
fn is_final(error: &ConnectionError) -> bool {
    matches!(error, ConnectionError::ConnectionRefused(code) if is_verdict(*code))
}

/// Whether the broker judged the client, rather than itself.
fn is_verdict(code: ConnectReturnCode) -> bool {
    code != ConnectReturnCode::ServiceUnavailable
}

fn refused(message: String) -> Error {
    Error::Refused { kind: Kind::Denied, message, retry_after: None }
}
