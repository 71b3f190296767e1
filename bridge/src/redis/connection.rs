//! Connections to a single server or to a cluster.

use std::time::Duration;

use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, IntoConnectionInfo, RedisResult, Value,
    aio::MultiplexedConnection, cluster::ClusterClient, cluster_async::ClusterConnection,
};

use super::settings::StreamSettings;
use crate::{Error, secret_file::SecretFile};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a response may take. Longer than a read waits for new entries.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

/// What a bridge works on is renewed three times as often, each time with a command.
const CLAIM_AFTER_MS_MIN: u64 = 1000;

/// A server, or one node of a cluster, and how to log in there.
#[derive(Clone)]
pub(crate) struct Node {
    info: ConnectionInfo,
    password: Option<SecretFile>,
    /// Without a password.
    pub(crate) url: String,
}

pub(super) enum Connection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Node {
    /// Reads the password; `table` is where the settings are, for messages.
    pub(crate) fn new(settings: &StreamSettings, table: &str) -> Result<Self, Error> {
        let refused = |name: &str, reason: &str| Error::setting(format!("{table}.{name}"), reason);
        let url = settings.url.trim_end_matches('/');
        if url.contains('@') {
            return Err(refused("url", "must not contain a password: set `username` and `password_file`"));
        }
        if !url.starts_with("redis://") {
            return Err(refused("url", "must be like redis://host:6379; TLS is not supported"));
        }
        if settings.claim_after_ms < CLAIM_AFTER_MS_MIN {
            return Err(refused("claim_after_ms", "must be at least 1000, or bridges take over what others work on"));
        }
        let info = url.into_connection_info().map_err(|_| refused("url", "must be like redis://host:6379"))?;
        let mut login = info.redis_settings().clone();
        if let Some(username) = &settings.username {
            login = login.set_username(username);
        }
        let password = settings.password_file.as_deref().map(SecretFile::open).transpose()?;
        Ok(Self { info: info.set_redis_settings(login), password, url: url.to_owned() })
    }

    /// The address and the login, with the password as it is now.
    fn info(&self) -> ConnectionInfo {
        let info = self.info.clone();
        let Some(password) = &self.password else { return info };
        let login = info.redis_settings().clone().set_password(password.current().expose());
        info.set_redis_settings(login)
    }
}

impl Connection {
    /// Connects; a node of a cluster leads to all of it.
    pub(super) async fn open(node: &Node) -> RedisResult<Self> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT));
        let client = Client::open(node.info())?;
        let mut single = client.get_multiplexed_async_connection_with_config(&config).await?;
        let description: String = redis::cmd("INFO").arg("cluster").query_async(&mut single).await?;
        if !description.contains("cluster_enabled:1") {
            return Ok(Self::Single(single));
        }
        let client = ClusterClient::builder([node.info()])
            .connection_timeout(CONNECT_TIMEOUT)
            .response_timeout(RESPONSE_TIMEOUT)
            .build()?;
        Ok(Self::Cluster(client.get_async_connection().await?))
    }

    pub(super) async fn query(&mut self, command: &Cmd) -> RedisResult<Value> {
        match self {
            Self::Single(connection) => command.query_async(connection).await,
            Self::Cluster(connection) => command.query_async(connection).await,
        }
    }
}
