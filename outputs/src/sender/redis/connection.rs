//! One connection to a Redis server or cluster.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo,
    RedisError, RedisResult, TlsCertificates, aio::MultiplexedConnection, cluster::ClusterClient,
    cluster_async::ClusterConnection, cmd,
};
use server::secret_file::SecretFile;
use tokio::{sync::Notify, time::timeout};

use super::{advice, sentinels::primary, settings::RedisSettings};
use crate::{
    Error,
    sender::{
        link::{Connector, LinkError},
        setting_files::{check_tls, read},
    },
};

const URL: &str = "must be like redis://host:6379, or rediss:// for TLS";
const TLS: &str = "rediss://";
const PLAIN: (&str, &str) = ("url", "must start with rediss:// where certificates are set");
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which a server that gets no entries is pinged.
const IDLE: Duration = Duration::from_secs(5);

/// A server, or one node of a cluster, and how to log in there.
pub(super) struct RedisServer {
    info: ConnectionInfo,
    /// They name the server; none if its address is known.
    sentinels: Vec<Client>,
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
    /// True if the server may become a replica.
    has_sentinels: bool,
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
        let is_tls = settings.url.starts_with(TLS);
        let files = [&settings.ca_certificate, &settings.certificate, &settings.key];
        check_tls(is_tls, PLAIN, files).map_err(|(name, reason)| refused(name, reason))?;
        let info = address(&settings.url).map_err(|reason| refused("url", reason))?;
        let mut login = info.redis_settings().clone();
        if let Some(username) = settings.username.as_deref() {
            login = login.set_username(username);
        }
        let password = settings.password_file.as_deref().map(SecretFile::open).transpose()?;
        let certificates = if is_tls { Some(certificates(settings)?) } else { None };
        let sentinels = settings.sentinels.iter().map(|url| {
            let info = address(url).map_err(|reason| refused("sentinels", reason))?;
            client(info, certificates.as_ref()).map_err(|_| refused("sentinels", URL))
        });
        let sentinels = sentinels.collect::<Result<_, _>>()?;
        let server = Self { info: info.set_redis_settings(login), sentinels, password, certificates, response_timeout };
        // It connects to nothing yet.
        client(server.info(), server.certificates.as_ref())
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

    async fn open(&self) -> RedisResult<Kind> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(self.response_timeout));
        let mut info = self.info();
        if !self.sentinels.is_empty() {
            let address = primary(&self.sentinels, &info, &config).await?;
            info = info.set_addr(address);
        }
        let client = client(info, self.certificates.as_ref())?;
        let mut single = client.get_multiplexed_async_connection_with_config(&config).await?;
        if !self.sentinels.is_empty() {
            return is_primary(&mut single).await.map(|()| Kind::Single(single));
        }
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
        Ok(RedisConnection { kind, failed: Arc::default(), has_sentinels: !self.sentinels.is_empty() })
    }

    async fn lost(&self, mut connection: RedisConnection) -> LinkError {
        loop {
            // Neither outcome says whether the server is there.
            _ = timeout(IDLE, connection.failed.clone().notified()).await;
            if let Err(error) = connection.check().await {
                return advice::lost(&error);
            }
        }
    }
}

impl RedisConnection {
    /// Fails if no entries can be added.
    async fn check(&mut self) -> RedisResult<()> {
        match &mut self.kind {
            Kind::Single(connection) if self.has_sentinels => is_primary(connection).await,
            _ => self.query(&cmd("PING")).await,
        }
    }

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

/// Parses a URL without a login.
fn address(url: &str) -> Result<ConnectionInfo, &'static str> {
    let url = url.trim_end_matches('/');
    if url.contains('@') {
        return Err("must not contain a password: set `username` and `password_file`");
    }
    if !url.starts_with(TLS) && !url.starts_with("redis://") {
        return Err(URL);
    }
    url.into_connection_info().map_err(|_| URL)
}

/// It connects to nothing yet.
fn client(info: ConnectionInfo, certificates: Option<&TlsCertificates>) -> RedisResult<Client> {
    match certificates {
        Some(certificates) if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) => {
            Client::build_with_tls(info, certificates.clone())
        }
        _ => Client::open(info),
    }
}

/// Fails where the server is a replica: what sentinels say may be wrong for a moment.
async fn is_primary(connection: &mut MultiplexedConnection) -> RedisResult<()> {
    let description: String = cmd("INFO").arg("replication").query_async(connection).await?;
    match description.contains("role:master") {
        true => Ok(()),
        false => Err((ErrorKind::Io, "the server is not the primary yet, or no longer").into()),
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
