//! One connection to a Kafka cluster.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use link::Remote;
use rskafka::{
    BackoffConfig,
    client::{ClientBuilder, Credentials, SaslConfig, error::Error as KafkaError, partition::Compression},
    record::Record,
};
use server::secret_file::SecretFile;
use tokio::{
    sync::{Notify, Semaphore},
    time::{sleep, timeout},
};
use tokio_rustls::rustls::ClientConfig;

use super::{
    advice,
    producers::{Failure, Producers},
    settings::{KafkaCompression, KafkaMechanism, KafkaSettings},
};
use crate::{
    Error,
    sender::link::{Connector, LinkError},
};

const PLAIN: (&str, &str) = ("tls", "must be true where certificates are set");
const CLIENT_ID: &str = "airlock";
const BROKERS: &str = "must have at least one address, each like host:9092";
/// Interval at which the cluster is asked for its topics, to notice new partitions and outages.
const IDLE: Duration = Duration::from_secs(30);
/// The least time between two such questions.
const PAUSE: Duration = Duration::from_secs(1);
/// Total of the client's pauses before it gives up, so that the reason is known before an attempt to connect ends.
/// Its attempts do not count, and take long on a slow machine: at most five fit.
const PAUSES_MAX: Duration = Duration::from_millis(500);
/// Maximum number of unconfirmed records, which are held in memory.
const UNCONFIRMED_MAX: usize = 256;

/// A cluster, and how to log in there.
pub(super) struct KafkaCluster {
    brokers: Vec<String>,
    login: Option<Login>,
    /// None without TLS.
    tls: Option<Arc<ClientConfig>>,
    compression: Compression,
    response_timeout: Duration,
}

struct Login {
    username: String,
    password: SecretFile,
    mechanism: KafkaMechanism,
}

/// A connection for sending records.
#[derive(Clone)]
pub(super) struct KafkaConnection {
    producers: Arc<Producers>,
    room: Arc<Semaphore>,
    /// Told when something failed.
    failed: Arc<Notify>,
}

impl KafkaCluster {
    /// Reads the files that the settings name.
    pub(super) fn new(settings: &KafkaSettings, response_timeout: Duration) -> Result<Self, Error> {
        let refused = |name: &str, reason: &str| Error::setting("kafka", &settings.name, name, reason);
        if settings.brokers.is_empty() || !settings.brokers.iter().all(|broker| is_address(broker)) {
            return Err(refused("brokers", BROKERS));
        }
        let remote = remote(settings);
        Ok(Self {
            brokers: settings.brokers.clone(),
            tls: remote.tls(settings.tls, PLAIN, &refused)?,
            login: login(settings, &remote)?,
            compression: compression(settings.compression),
            response_timeout,
        })
    }

    fn sasl(&self) -> Option<SaslConfig> {
        let Login { username, password, mechanism } = self.login.as_ref()?;
        let credentials = Credentials::new(username.clone(), password.current().expose().to_owned());
        Some(match mechanism {
            KafkaMechanism::Plain => SaslConfig::Plain(credentials),
            KafkaMechanism::ScramSha256 => SaslConfig::ScramSha256(credentials),
            KafkaMechanism::ScramSha512 => SaslConfig::ScramSha512(credentials),
        })
    }

    async fn open(&self) -> Result<Producers, KafkaError> {
        let mut builder = ClientBuilder::new(self.brokers.clone()).client_id(CLIENT_ID).backoff_config(BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_millis(500),
            base: 2.0,
            deadline: Some(PAUSES_MAX),
        });
        if let Some(tls) = &self.tls {
            builder = builder.tls_config(tls.clone());
        }
        if let Some(sasl) = self.sasl() {
            builder = builder.sasl_config(sasl);
        }
        Producers::new(builder.build().await?, self.compression).await
    }
}

#[async_trait]
impl Connector for KafkaCluster {
    type Connection = KafkaConnection;

    async fn connect(&self) -> Result<KafkaConnection, LinkError> {
        let producers = self.open().await.map_err(|error| advice::lost(&error))?;
        let room = Arc::new(Semaphore::new(UNCONFIRMED_MAX));
        Ok(KafkaConnection { producers: Arc::new(producers), room, failed: Arc::default() })
    }

    async fn lost(&self, connection: KafkaConnection) -> LinkError {
        loop {
            sleep(PAUSE).await;
            // Neither outcome says whether the cluster is there.
            _ = timeout(IDLE, connection.failed.notified()).await;
            match timeout(self.response_timeout, connection.producers.refresh()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return advice::lost(&error),
                Err(_) => return LinkError::without_advice("the cluster does not answer"),
            }
        }
    }
}

impl KafkaConnection {
    /// Sends a record, and returns when all replicas that are in sync have it.
    pub(super) async fn send(&self, topic: &str, key: &[u8], record: Record) -> Result<(), Failure> {
        // The semaphore is never closed.
        let _room = self.room.acquire().await;
        let result = self.producers.send(topic, key, record).await;
        if !matches!(result, Ok(()) | Err(Failure::TooLarge)) {
            self.failed();
        }
        result
    }

    /// Has the cluster asked whether it is there, and which topics it has.
    pub(super) fn failed(&self) {
        self.failed.notify_one();
    }
}

/// Returns true if the text has the form `host:9092`.
fn is_address(text: &str) -> bool {
    let (host, port) = text.rsplit_once(':').unwrap_or_default();
    !host.is_empty() && !host.contains(['/', '@', ' ']) && port.parse::<u16>().is_ok()
}

/// The login and the files; the brokers have addresses of their own.
fn remote(settings: &KafkaSettings) -> Remote {
    let KafkaSettings { username, password_file, ca_certificate, certificate, key, .. } = settings.clone();
    Remote { url: String::new(), username, password_file, ca_certificate, certificate, key }
}

fn login(settings: &KafkaSettings, remote: &Remote) -> Result<Option<Login>, Error> {
    match (remote.username.clone(), remote.password()?) {
        (Some(username), Some(password)) => Ok(Some(Login { username, password, mechanism: settings.mechanism })),
        (None, None) => Ok(None),
        _ => Err(Error::setting("kafka", &settings.name, "username", "must be set together with `password_file`")),
    }
}

fn compression(setting: KafkaCompression) -> Compression {
    match setting {
        KafkaCompression::None => Compression::NoCompression,
        KafkaCompression::Gzip => Compression::Gzip,
        KafkaCompression::Snappy => Compression::Snappy,
        KafkaCompression::Lz4 => Compression::Lz4,
        KafkaCompression::Zstd => Compression::Zstd,
    }
}
