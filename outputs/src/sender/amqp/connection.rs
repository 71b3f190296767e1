//! One connection to a broker with one channel, on which each message is confirmed.

use std::{mem, sync::Arc, time::Duration};

use amqprs::{
    BasicProperties, DELIVERY_MODE_PERSISTENT,
    channel::{BasicPublishArguments, Channel, ConfirmSelectArguments, ExchangeDeclareArguments},
    connection::{Connection, OpenConnectionArguments},
    error::Error as AmqpError,
    tls::TlsAdaptor,
};
use async_trait::async_trait;
use server::secret_file::SecretFile;
use tokio::{
    sync::{Mutex, Semaphore},
    time::timeout,
};
use tokio_rustls::TlsConnector;
use types::Secret;

use super::{
    advice::{self, refused},
    confirms::{Confirmation, Confirms},
    listener::{ChannelListener, ConnectionListener},
    routing,
    settings::AmqpSettings,
    url::AmqpUrl,
};
use crate::{
    Error,
    message::Outgoing,
    sender::link::{Connector, LinkError},
};

/// After two of them without a sign of life, the connection is given up.
const HEARTBEAT_S: u16 = 10;
/// Maximum number of unconfirmed messages, which are held in memory.
const UNCONFIRMED_MAX: usize = 128;
/// Time that the broker may owe answers before the connection is made again.
const STALL_MAX: Duration = Duration::from_secs(300);
/// Usual cause of a stall.
const ALARM: &str = "it may lack memory or disk space";
const PLAIN: (&str, &str) = ("url", "must start with amqps:// where certificates are set");
const DEFAULT_PASSWORD: &str = "guest";

/// A broker with an exchange, and how to log in there.
pub(super) struct AmqpServer {
    url: AmqpUrl,
    username: String,
    /// None for the password that brokers have at first.
    password: Option<SecretFile>,
    /// None without TLS.
    tls: Option<TlsConnector>,
    exchange: String,
    declare_exchange: bool,
    mandatory: bool,
}

/// A channel that confirms messages.
#[derive(Clone)]
pub(super) struct AmqpConnection {
    channel: Channel,
    confirms: Arc<Confirms>,
    /// The tag of the next message: the broker counts them.
    next_tag: Arc<Mutex<u64>>,
    room: Arc<Semaphore>,
    exchange: Arc<str>,
    mandatory: bool,
    /// Closes the connection when it is dropped.
    _connection: Connection,
}

impl AmqpServer {
    /// Reads the files that the settings name.
    pub(super) fn new(settings: &AmqpSettings) -> Result<Self, Error> {
        let refused = |name: &str, reason: &str| Error::setting("amqp", &settings.name, name, reason);
        let remote = settings.remote();
        let url = AmqpUrl::parse(&remote.url).map_err(|reason| refused("url", reason))?;
        let tls = remote.tls(url.is_tls, PLAIN, &refused)?.map(TlsConnector::from);
        if settings.exchange.len() > 255 {
            return Err(refused("exchange", "must have at most 255 bytes"));
        }
        let password = remote.password()?;
        let AmqpSettings { username, exchange, declare_exchange, mandatory, .. } = settings.clone();
        Ok(Self { url, username, password, tls, exchange, declare_exchange, mandatory })
    }

    fn arguments(&self) -> OpenConnectionArguments {
        let password = self.password.as_ref().map_or_else(|| Secret::new(DEFAULT_PASSWORD), SecretFile::current);
        let AmqpUrl { host, port, virtual_host, .. } = &self.url;
        // An IPv6 address needs brackets where the port follows.
        let address = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let mut arguments = OpenConnectionArguments::new(&address, *port, &self.username, password.expose());
        arguments.virtual_host(virtual_host).heartbeat(HEARTBEAT_S).connection_name("airlock");
        if let Some(connector) = &self.tls {
            arguments.tls_adaptor(TlsAdaptor::new(connector.clone(), host.clone()));
        }
        arguments
    }

    /// Opens a channel that confirms messages, and makes sure that there is the exchange.
    async fn open(&self, connection: Connection, confirms: Arc<Confirms>) -> Result<AmqpConnection, AmqpError> {
        connection.register_callback(ConnectionListener(confirms.clone())).await?;
        let channel = connection.open_channel(None).await?;
        channel.register_callback(ChannelListener(confirms.clone())).await?;
        channel.confirm_select(ConfirmSelectArguments::default()).await?;
        let mut declare = ExchangeDeclareArguments::new(&self.exchange, "topic");
        channel.exchange_declare(declare.durable(true).passive(!self.declare_exchange).finish()).await?;
        Ok(AmqpConnection {
            channel,
            confirms,
            next_tag: Arc::new(Mutex::new(1)),
            room: Arc::new(Semaphore::new(UNCONFIRMED_MAX)),
            exchange: Arc::from(self.exchange.as_str()),
            mandatory: self.mandatory,
            _connection: connection,
        })
    }
}

#[async_trait]
impl Connector for AmqpServer {
    type Connection = AmqpConnection;

    async fn connect(&self) -> Result<AmqpConnection, LinkError> {
        let connection = Connection::open(&self.arguments()).await.map_err(|error| advice::not_connected(&error))?;
        let confirms = Confirms::new();
        let opened = self.open(connection, confirms.clone()).await;
        // What the broker said about it is more than the client's error.
        opened.map_err(|error| match confirms.end() {
            Some(end) => refused(&end),
            None => LinkError::without_advice(error.to_string()),
        })
    }

    async fn lost(&self, connection: AmqpConnection) -> LinkError {
        let confirms = connection.confirms;
        let mut was_told = false;
        loop {
            tokio::select! {
                end = confirms.ended() => return refused(&end),
                () = confirms.stalled(true) => {}
            }
            // It may take minutes until it goes on, or the connection is given up.
            if !mem::replace(&mut was_told, true) {
                let exchange = &self.exchange;
                tracing::warn!(exchange, "the broker does not confirm in time, so messages wait: {ALARM}");
            }
            if timeout(STALL_MAX, confirms.stalled(false)).await.is_err() {
                return LinkError::without_advice(format!("the broker confirms nothing: {ALARM}"));
            }
        }
    }
}

impl AmqpConnection {
    /// Publishes a message, and waits for its outcome.
    pub(super) async fn publish(
        &self,
        Outgoing { id, app_id, message, .. }: &Outgoing,
    ) -> Result<Confirmation, AmqpError> {
        let mut properties = BasicProperties::default();
        properties
            .with_content_type("application/json")
            .with_delivery_mode(DELIVERY_MODE_PERSISTENT)
            .with_message_id(id)
            .with_message_type(&message.event)
            .with_timestamp(message.time.as_secs());
        let mut arguments = BasicPublishArguments::new(&self.exchange, &routing::key(app_id, message));
        arguments.mandatory(self.mandatory);
        let body = message.body.get().as_bytes().to_vec();
        // The semaphore is never closed.
        let Ok(room) = Arc::clone(&self.room).acquire_owned().await else {
            return Ok(Confirmation::Ended(self.confirms.end().unwrap_or_default()));
        };
        let mut tag = self.next_tag.lock().await;
        let confirmation = self.confirms.expect(*tag, id, room);
        // If this is cancelled, nothing is published, and the next message gets the same tag.
        self.channel.basic_publish(properties, body, arguments).await?;
        let published = self.confirms.published(*tag, confirmation);
        *tag += 1;
        drop(tag);
        Ok(published.confirmation().await)
    }

    /// Returns true if messages can be sent now.
    pub(super) fn is_ready(&self) -> bool {
        !self.confirms.is_ended() && !self.confirms.is_stalled()
    }

    pub(super) fn is_ended(&self) -> bool {
        self.confirms.is_ended()
    }

    /// Waits until the broker owes no answers that nobody waits for any more.
    pub(super) async fn settled(&self) {
        self.confirms.stalled(false).await;
    }
}
