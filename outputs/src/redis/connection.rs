//! One connection to a Redis server or cluster.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, Cmd, ConnectionInfo, IntoConnectionInfo, RedisError, RedisResult,
    TlsCertificates, aio::MultiplexedConnection, cluster::ClusterClient, cluster_async::ClusterConnection, cmd,
};
use server::secret_file::SecretFile;
use tokio::{sync::Notify, time::timeout};

use super::{advice, settings::RedisSettings};
use crate::{
    Error,
    link::{Connector, LinkError},
    setting_files::{check_tls, read},
};

const URL: &str = "must be like redis://host:6379, or rediss:// for TLS";
const TLS: &str = "rediss://";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a server that gets no entries is asked whether it is there.
const IDLE: Duration = Duration::from_secs(5);

/// A server, or one node of a cluster, and how to log in there.
pub(super) struct RedisServer {
    info: ConnectionInfo,
    password: Option<SecretFile>,
    /// None without TLS.
    certificates: Option<TlsCertificates>,
    response_timeout: Duration,
}

/// A connection for adding entries.
#[derive(Clone)]
pub(super) struct RedisConnection {
    kind: Kind,
    /// Told when something failed.
    failed: Arc<Notify>,
}

#[derive(Clone)]
enum Kind {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl RedisServer {
    /// Reads the files that the settings name.
    pub(super) fn new(settings: &RedisSettings, response_timeout: Duration) -> Result<Self, Error> {
        let refused = |name: &str, reason: &str| Error::setting("redis", &settings.name, name, reason);
        let url = settings.url.trim_end_matches('/');
        if url.contains('@') {
            return Err(refused("url", "must not contain a password: set `username` and `password_file`"));
        }
        let is_tls = url.starts_with(TLS);
        if !is_tls && !url.starts_with("redis://") {
            return Err(refused("url", URL));
        }
        let files = [&settings.ca_certificate, &settings.certificate, &settings.key];
        check_tls(is_tls, TLS, files).map_err(|(name, reason)| refused(name, &reason))?;
        let info = url.into_connection_info().map_err(|_| refused("url", URL))?;
        let mut login = info.redis_settings().clone();
        if let Some(username) = settings.username.as_deref() {
            login = login.set_username(username);
        }
        let password = settings.password_file.as_deref().map(SecretFile::open).transpose()?;
        let certificates = if is_tls { Some(certificates(settings)?) } else { None };
        let server = Self { info: info.set_redis_settings(login), password, certificates, response_timeout };
        // It connects to nothing yet.
        server
            .client()
            .map_err(|error| refused("ca_certificate", &format!("or `certificate` is not valid: {error}")))?;
        Ok(server)
    }

    /// The address and the login, with the password as it is now.
    fn info(&self) -> ConnectionInfo {
        let info = self.info.clone();
        let Some(password) = &self.password else { return info };
        let login = info.redis_settings().clone().set_password(password.current().expose());
        info.set_redis_settings(login)
    }

    fn client(&self) -> RedisResult<Client> {
        match &self.certificates {
            Some(certificates) => Client::build_with_tls(self.info(), certificates.clone()),
            None => Client::open(self.info()),
        }
    }

    async fn open(&self) -> RedisResult<Kind> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(self.response_timeout));
        let mut single = self.client()?.get_multiplexed_async_connection_with_config(&config).await?;
        let description: String = cmd("INFO").arg("cluster").query_async(&mut single).await?;
        if !description.contains("cluster_enabled:1") {
            return Ok(Kind::Single(single));
        }
        let builder = ClusterClient::builder([self.info()]);
        let builder = match &self.certificates {
            Some(certificates) => builder.certs(certificates.clone()),
            None => builder,
        };
        let client = builder.connection_timeout(CONNECT_TIMEOUT).response_timeout(self.response_timeout).build()?;
        Ok(Kind::Cluster(client.get_async_connection().await?))
    }
}

#[async_trait]
impl Connector for RedisServer {
    type Connection = RedisConnection;

    async fn connect(&self) -> Result<RedisConnection, LinkError> {
        let kind = self.open().await.map_err(|error| advice::lost(&error))?;
        Ok(RedisConnection { kind, failed: Arc::default() })
    }

    async fn lost(&self, mut connection: RedisConnection) -> LinkError {
        loop {
            // Neither outcome says whether the server is there.
            _ = timeout(IDLE, connection.failed.clone().notified()).await;
            if let Err(error) = connection.query(&cmd("PING")).await {
                return advice::lost(&error);
            }
        }
    }
}

impl RedisConnection {
    async fn query(&mut self, command: &Cmd) -> RedisResult<()> {
        match &mut self.kind {
            Kind::Single(connection) => command.query_async(connection).await,
            Kind::Cluster(connection) => command.query_async(connection).await,
        }
    }

    /// Runs a command, and returns when the server has confirmed it.
    pub(super) async fn run(mut self, command: &Cmd) -> Result<(), RedisError> {
        let result = self.query(command).await;
        if result.is_err() {
            self.failed.notify_one();
        }
        result
    }
}

fn certificates(settings: &RedisSettings) -> Result<TlsCertificates, Error> {
    let client_tls = match (&settings.certificate, &settings.key) {
        (Some(certificate), Some(key)) => {
            Some(ClientTlsConfig { client_cert: read(certificate)?.into_bytes(), client_key: read(key)?.into_bytes() })
        }
        _ => None,
    };
    let root_cert = settings.ca_certificate.as_deref().map(read).transpose()?.map(String::into_bytes);
    Ok(TlsCertificates { client_tls, root_cert })
}
