//! One type for connections to a single server, to the primary that sentinels name, and to a cluster.

use std::time::Duration;

use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, FromRedisValue, IntoConnectionInfo, Pipeline, RedisError,
    RedisFuture, RedisResult, Value,
    aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig},
    cluster::ClusterClient,
    cluster_async::ClusterConnection,
    cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo, SingleNodeRoutingInfo},
    cmd, from_redis_value,
    io::tcp::TcpSettings,
};

use super::{
    sentinels::PrimaryConnection,
    settings::{RedisSettings, without_password},
};
use crate::Error;

/// Number of further attempts to connect before a call fails.
const RETRIES: usize = 3;
/// The shortest and the longest pause between two attempts.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// A multiplexed connection that reconnects by itself.
#[derive(Clone)]
pub(super) enum Connection {
    Single(ConnectionManager),
    Primary(PrimaryConnection),
    Cluster(ClusterConnection),
}

impl Connection {
    /// Connects; fails when the server does not answer.
    pub(super) async fn open(settings: &RedisSettings) -> Result<Self, Error> {
        let failed = |error: RedisError| Error::unavailable("connect to Redis", error);
        let (nodes, sentinels) = (nodes(settings, &settings.urls)?, nodes(settings, &settings.sentinels)?);
        let opened = match (settings.cluster, sentinels.is_empty()) {
            (true, _) => cluster(settings, nodes).await,
            (false, true) => single(settings, nodes).await,
            (false, false) => primary(settings, nodes, sentinels).await,
        };
        opened.map_err(failed)
    }

    /// The addresses of the servers that have parts of the entries; one without a name if it is a single one.
    pub(super) async fn parts(&mut self) -> RedisResult<Vec<String>> {
        let Self::Cluster(connection) = self else { return Ok(vec![String::new()]) };
        let primaries = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
        let answers = connection.route_command(cmd("PING"), primaries).await?;
        let mut answers: Vec<(String, String)> = from_redis_value(answers)?;
        answers.sort();
        Ok(answers.into_iter().map(|(address, _)| address).collect())
    }

    /// Sends a command to one of [`Connection::parts`].
    pub(super) async fn ask_part<T: FromRedisValue>(&mut self, part: &str, command: Cmd) -> RedisResult<T> {
        let address = part.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        match (self, address) {
            (Self::Cluster(connection), Some((host, port))) => {
                let node = SingleNodeRoutingInfo::ByAddress { host: host.to_owned(), port };
                Ok(from_redis_value(connection.route_command(command, RoutingInfo::SingleNode(node)).await?)?)
            }
            (connection, _) => command.query_async(connection).await,
        }
    }

    /// Looks for the primary again, because no replica confirms changes on this one.
    pub(super) async fn give_up(&self) {
        if let Self::Primary(connection) = self {
            connection.give_up().await;
        }
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Single(connection) => connection.req_packed_command(command),
            Self::Primary(connection) => connection.req_packed_command(command),
            Self::Cluster(connection) => connection.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Single(connection) => connection.req_packed_commands(pipeline, offset, count),
            Self::Primary(connection) => connection.req_packed_commands(pipeline, offset, count),
            Self::Cluster(connection) => connection.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Single(connection) => connection.get_db(),
            Self::Primary(connection) => connection.get_db(),
            Self::Cluster(connection) => connection.get_db(),
        }
    }
}

fn nodes(settings: &RedisSettings, urls: &[String]) -> Result<Vec<ConnectionInfo>, Error> {
    let parse = |url: &String| {
        let info = url.as_str().into_connection_info();
        let rule = "an address in `store.redis.urls` looks like redis://host:6379";
        let info = info.map_err(|_| Error::invalid("Redis address", &without_password(url), rule))?;
        Ok(info.set_tcp_settings(tcp(settings)))
    };
    urls.iter().map(parse).collect()
}

/// Sends small messages at once, and notices within the response timeout that the server is gone: the kernel alone
/// would wait for a quarter of an hour.
fn tcp(settings: &RedisSettings) -> TcpSettings {
    let timeout = Duration::from_millis(settings.response_timeout_ms);
    TcpSettings::default().set_nodelay(true).set_user_timeout(timeout)
}

async fn single(settings: &RedisSettings, nodes: Vec<ConnectionInfo>) -> RedisResult<Connection> {
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(Duration::from_millis(settings.connect_timeout_ms)))
        .set_response_timeout(Some(Duration::from_millis(settings.response_timeout_ms)))
        .set_number_of_retries(RETRIES)
        .set_min_delay(BACKOFF.0)
        .set_max_delay(BACKOFF.1);
    let client = Client::open(only(nodes)?)?;
    Ok(Connection::Single(ConnectionManager::new_with_config(client, config).await?))
}

async fn primary(
    settings: &RedisSettings,
    nodes: Vec<ConnectionInfo>,
    sentinels: Vec<ConnectionInfo>,
) -> RedisResult<Connection> {
    let response = Duration::from_millis(settings.response_timeout_ms);
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(Duration::from_millis(settings.connect_timeout_ms)))
        .set_response_timeout(Some(response));
    Ok(Connection::Primary(PrimaryConnection::open(sentinels, only(nodes)?, config, response).await?))
}

fn only(nodes: Vec<ConnectionInfo>) -> RedisResult<ConnectionInfo> {
    nodes.into_iter().next().ok_or_else(|| (redis::ErrorKind::InvalidClientConfig, "no address").into())
}

async fn cluster(settings: &RedisSettings, nodes: Vec<ConnectionInfo>) -> RedisResult<Connection> {
    let response = Duration::from_millis(settings.response_timeout_ms);
    let client = ClusterClient::builder(nodes)
        .connection_timeout(Duration::from_millis(settings.connect_timeout_ms))
        .response_timeout(response)
        .overall_response_timeout(Some(2 * response))
        .retries(RETRIES as u32)
        .min_retry_wait(BACKOFF.0.as_millis() as u64)
        .max_retry_wait(BACKOFF.1.as_millis() as u64)
        .tcp_settings(tcp(settings))
        .build()?;
    Ok(Connection::Cluster(client.get_async_connection().await?))
}
