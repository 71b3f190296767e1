//! Attempts to connect: to a server, to the primary that sentinels name, or to a cluster.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError, RedisResult,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster_async::ClusterConnection,
    cmd,
    io::tcp::TcpSettings,
};
use tokio::time::{sleep, timeout};

use super::node::Node;

/// Number of further attempts to connect before a call fails. Sentinels are asked in turns instead.
const RETRIES: usize = 3;
/// The shortest and the longest pause between two attempts.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
const NO_SENTINEL: &str = "no sentinel answers";

/// A connection to one server, or to those of a cluster.
#[derive(Clone)]
pub(super) enum Connected {
    Server(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// Connects to what a node names.
pub(super) struct Connector {
    /// The sentinel to ask first comes first: it answered last, or those before it named no primary.
    node: Node,
    config: AsyncConnectionConfig,
    /// Also the maximum time for connecting by sentinels or to a single server, with all attempts.
    response_timeout: Duration,
}

impl Connector {
    pub(super) fn new(node: Node, response_timeout: Duration) -> Self {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(node.connect_timeout))
            .set_response_timeout(Some(response_timeout));
        Self { node, config, response_timeout }
    }

    pub(super) async fn connect(&mut self) -> RedisResult<Connected> {
        if self.node.has_sentinels() {
            return self.primary().await.map(Connected::Server);
        }
        match self.node.is_cluster {
            Some(true) => self.cluster().await,
            Some(false) => self.single().await.map(Connected::Server),
            None => {
                let mut server = self.server(self.node.info()).await?;
                let description: String = cmd("INFO").arg("cluster").query_async(&mut server).await?;
                match description.contains("cluster_enabled:1") {
                    true => self.cluster().await,
                    false => Ok(Connected::Server(server)),
                }
            }
        }
    }

    /// Asks another sentinel first the next time: this one may be cut off together with an old primary.
    pub(super) fn skip_sentinel(&mut self) {
        if self.node.has_sentinels() {
            self.node.sentinels.rotate_left(1);
        }
    }

    async fn single(&self) -> RedisResult<MultiplexedConnection> {
        let pauses = ExponentialBuilder::new().with_min_delay(BACKOFF.0).with_max_delay(BACKOFF.1);
        let connect = || self.server(self.node.info());
        let connecting = connect.retry(pauses.with_max_times(RETRIES).with_jitter()).sleep(sleep);
        let connected = timeout(self.response_timeout, connecting).await;
        connected.unwrap_or_else(|_| Err(no_answer("the server does not answer")))
    }

    async fn server(&self, info: ConnectionInfo) -> RedisResult<MultiplexedConnection> {
        let client = self.node.client(info.set_tcp_settings(self.tcp()))?;
        client.get_multiplexed_async_connection_with_config(&self.config).await
    }

    async fn cluster(&self) -> RedisResult<Connected> {
        let client = self
            .node
            .cluster()
            .connection_timeout(self.node.connect_timeout)
            .response_timeout(self.response_timeout)
            .overall_response_timeout(Some(2 * self.response_timeout))
            .retries(RETRIES as u32)
            .min_retry_wait(BACKOFF.0.as_millis() as u64)
            .max_retry_wait(BACKOFF.1.as_millis() as u64)
            .tcp_settings(self.tcp())
            .build()?;
        client.get_async_connection().await.map(Connected::Cluster)
    }

    /// Sends small messages at once, and notices within the response timeout that the server is gone: the kernel alone
    /// would wait for a quarter of an hour.
    fn tcp(&self) -> TcpSettings {
        TcpSettings::default().set_nodelay(true).set_user_timeout(self.response_timeout)
    }

    async fn primary(&mut self) -> RedisResult<MultiplexedConnection> {
        let mut failure = no_answer(NO_SENTINEL);
        let count = self.node.sentinels.len();
        // One that hangs leaves time for the others.
        let wait_max = self.response_timeout / u32::try_from(count).unwrap_or(1).max(1);
        for _ in 0..count {
            let Some(sentinel) = self.node.sentinels.first().cloned() else { break };
            // The next one comes first even if the caller waits no longer.
            self.node.sentinels.rotate_left(1);
            let asked = timeout(wait_max, self.primary_by(&sentinel)).await;
            match asked.unwrap_or_else(|_| Err(no_answer(NO_SENTINEL))) {
                Ok(connection) => {
                    self.node.sentinels.rotate_right(1);
                    return Ok(connection);
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Connects to the primary that a sentinel names. It may be wrong for a moment, so the server is asked, too.
    async fn primary_by(&self, sentinel: &Client) -> RedisResult<MultiplexedConnection> {
        let info = self.node.info();
        let mut sentinel = sentinel.get_multiplexed_async_connection_with_config(&self.config).await?;
        let name = name(&info);
        let found: Option<(String, u16)> =
            cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(name).query_async(&mut sentinel).await?;
        let Some((host, port)) = found else {
            let what = "the sentinels know no primary of this name";
            return Err((ErrorKind::MasterNameNotFoundBySentinel, what, name.to_owned()).into());
        };
        let address = address(&info, host, port);
        let mut server = self.server(info.set_addr(address)).await?;
        check_primary(&mut server).await?;
        Ok(server)
    }
}

/// Fails where the server is a replica: what sentinels say may be wrong for a moment.
pub(super) async fn check_primary(connection: &mut impl ConnectionLike) -> RedisResult<()> {
    let description: String = cmd("INFO").arg("replication").query_async(connection).await?;
    match description.contains("role:master") {
        true => Ok(()),
        false => Err((ErrorKind::Io, "the server is not the primary yet, or no longer").into()),
    }
}

fn no_answer(what: &'static str) -> RedisError {
    (ErrorKind::Io, what).into()
}

/// The name by which the sentinels know the primary.
fn name(server: &ConnectionInfo) -> &str {
    match server.addr() {
        ConnectionAddr::Tcp(name, _) | ConnectionAddr::TcpTls { host: name, .. } => name,
        _ => "",
    }
}

/// An address, with TLS as the settings have it.
fn address(server: &ConnectionInfo, host: String, port: u16) -> ConnectionAddr {
    match server.addr() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
        }
        _ => ConnectionAddr::Tcp(host, port),
    }
}
