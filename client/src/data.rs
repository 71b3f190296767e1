//! Data: messages of an application as they arrive, and messages to its devices, over MQTT.

mod address;
mod connection;

use std::{collections::VecDeque, time::Duration};

use rumqttc::{AsyncClient, ConnectReturnCode, ConnectionError, MqttOptions, QoS, SubscribeFilter, valid_filter};
use tokio::{sync::mpsc, time::timeout};
use types::{AppId, Credential, DevId, Downlink, Kind};

use self::connection::{Happening, is_final, is_verdict, keep};
use crate::{Error, Result, Trust};

/// The largest message that is taken.
const PACKET_BYTES_MAX: usize = 1024 * 1024;

/// How many messages may wait to be read; beyond that the broker has to wait.
const QUEUE_MAX: usize = 1000;

/// How long the first connection, and the answer to a subscription, may take.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

const KEEP_ALIVE: Duration = Duration::from_secs(30);

const SERVICE: &str = "MQTT broker";

/// A message from the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Like `my-app/devices/my-device/up`.
    pub topic: String,
    /// JSON.
    pub payload: Vec<u8>,
}

/// A connection to the messages of one application.
///
/// A connection that breaks is made again, with its subscriptions; messages of the meantime are lost, as MQTT has it
/// for clients that keep nothing. Only a credential or a subscription that is refused is an error.
#[derive(Debug)]
pub struct DataClient {
    client: AsyncClient,
    events: mpsc::Receiver<Happening>,
    address: String,
    app_id: AppId,
    filters: Vec<String>,
    /// What arrived while an answer was waited for.
    early: VecDeque<Message>,
}

impl DataClient {
    /// Connects to an address like `localhost:1883`, as the handler announces it.
    ///
    /// At one like `mqtts://broker.example` it trusts whom this machine trusts.
    pub async fn connect(address: &str, app_id: &AppId, credential: &Credential) -> Result<Self> {
        let encrypted = address.starts_with("mqtts:");
        let trust = if encrypted { Trust::System } else { Trust::Plaintext };
        Self::connect_with_trust(address, &trust, app_id, credential).await
    }

    /// Connects to a broker that proves itself otherwise.
    pub async fn connect_with_trust(
        address: &str,
        trust: &Trust,
        app_id: &AppId,
        credential: &Credential,
    ) -> Result<Self> {
        let mut options = options(address::read(address, trust)?, app_id, credential);
        options.set_transport(address::transport(trust)?);
        let (client, events) = AsyncClient::new(options, QUEUE_MAX);
        let (report, reports) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(keep(events, report));
        let mut this = Self {
            client,
            events: reports,
            address: address.to_owned(),
            app_id: app_id.clone(),
            filters: Vec::new(),
            early: VecDeque::new(),
        };
        match this.answer().await? {
            Happening::Failed(error) => Err(this.failed(error)),
            _ => Ok(this),
        }
    }

    /// Asks for messages that match an MQTT filter, like `my-app/devices/+/up`.
    pub async fn subscribe(&mut self, filter: &str) -> Result<()> {
        if !valid_filter(filter) {
            return Err(invalid(format!("filter `{filter}` not valid: must be like my-app/devices/+/up")));
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
                happening => self.put_off(happening)?,
            }
        }
    }

    /// Sends a message to a device; returns when the broker has it.
    ///
    /// A broker of MQTT 3.1.1 cannot say that the credential lacks the right for it: then the message goes nowhere.
    pub async fn send(&mut self, dev_id: &DevId, downlink: &Downlink) -> Result<()> {
        let topic = format!("{}/devices/{dev_id}/down", self.app_id);
        let payload = serde_json::to_vec(downlink).map_err(|error| invalid(format!("downlink not valid: {error}")))?;
        self.client.try_publish(topic, QoS::AtLeastOnce, false, payload).map_err(|_| self.silent())?;
        loop {
            match self.answer().await? {
                Happening::Accepted => return Ok(()),
                happening => self.put_off(happening)?,
            }
        }
    }

    /// Keeps for later what came while an answer was waited for.
    fn put_off(&mut self, happening: Happening) -> Result<()> {
        match happening {
            Happening::Arrived(message) if self.early.len() < QUEUE_MAX => self.early.push_back(message),
            Happening::Arrived(_) => return Err(self.silent()),
            happening => self.recover(happening)?,
        }
        Ok(())
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
            Happening::Subscribed { .. } | Happening::Accepted | Happening::Arrived(_) => Ok(()),
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

fn options((host, port): (&str, u16), app_id: &AppId, credential: &Credential) -> MqttOptions {
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
    options
}

fn invalid(message: String) -> Error {
    Error::Refused { kind: Kind::Invalid, message, retry_after: None }
}

fn refused(message: String) -> Error {
    Error::Refused { kind: Kind::Denied, message, retry_after: None }
}
