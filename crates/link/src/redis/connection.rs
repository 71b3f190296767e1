//! Connections to a single server, to the primary that sentinels name, or to a cluster.

use std::time::Duration;

use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, RedisResult, Value, aio::MultiplexedConnection,
    cluster_async::ClusterConnection, cmd,
};

use super::node::Node;

/// Maximum time to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time to wait for a response; longer than a read waits for new entries.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

/// A connection that does not reconnect: whoever has it notices its end, and says so.
#[derive(Clone)]
pub struct Connection(Kind);

#[derive(Clone)]
enum Kind {
    Single(MultiplexedConnection),
    /// Sentinels named it; it may become a replica.
    Primary(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Connection {
    /// Connects; a node of a cluster leads to all of it.
    pub async fn open(node: &Node, response_timeout: Duration) -> RedisResult<Self> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(response_timeout));
        let client = node.client(&config).await?;
        let mut single = client.get_multiplexed_async_connection_with_config(&config).await?;
        if node.has_sentinels() {
            return is_primary(&mut single).await.map(|()| Self(Kind::Primary(single)));
        }
        let description: String = cmd("INFO").arg("cluster").query_async(&mut single).await?;
        if !description.contains("cluster_enabled:1") {
            return Ok(Self(Kind::Single(single)));
        }
        let client = node.cluster().connection_timeout(CONNECT_TIMEOUT).response_timeout(response_timeout).build()?;
        Ok(Self(Kind::Cluster(client.get_async_connection().await?)))
    }

    /// Runs a command, and returns when the server has confirmed it.
    pub async fn query(&mut self, command: &Cmd) -> RedisResult<Value> {
        match &mut self.0 {
            Kind::Single(connection) | Kind::Primary(connection) => command.query_async(connection).await,
            Kind::Cluster(connection) => command.query_async(connection).await,
        }
    }

    /// Sends commands at once. An error means that some of them may not have been carried out.
    pub(super) async fn pipeline(&mut self, commands: &Pipeline) -> RedisResult<()> {
        match &mut self.0 {
            Kind::Single(connection) | Kind::Primary(connection) => commands.exec_async(connection).await,
            Kind::Cluster(connection) => commands.exec_async(connection).await,
        }
    }

    /// Fails if nothing can be written.
    pub async fn check(&mut self) -> RedisResult<()> {
        match &mut self.0 {
            Kind::Primary(connection) => is_primary(connection).await,
            _ => self.query(&cmd("PING")).await.map(drop),
        }
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

#[cfg(test)]
mod tests {
    use testing::{Certificates, RedisProcess};

    use super::{super::settings::StreamSettings, *};

    /// The server wants a client certificate, and both want the other's to be of their authority.
    #[tokio::test]
    async fn certificates_are_checked() {
        // The only error is that a provider is installed already.
        _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let (certificates, other) = (Certificates::create(), Certificates::create());
        let Some((_redis, url)) = RedisProcess::start_tls(&certificates) else { return };
        for (authority, client, is_accepted) in [
            (Some(&certificates), Some(&certificates), true),
            (Some(&other), Some(&certificates), false),
            (None, Some(&certificates), false),
            (Some(&certificates), Some(&other), false),
            (Some(&certificates), None, false),
        ] {
            let settings = StreamSettings {
                url: url.clone(),
                ca_certificate: authority.map(|certificates| certificates.path("ca.pem")),
                certificate: client.map(|certificates| certificates.path("client.pem")),
                key: client.map(|certificates| certificates.path("client.key")),
                ..StreamSettings::default()
            };
            let node = Node::of_stream(&settings, "test").unwrap();
            assert_eq!(Connection::open(&node, RESPONSE_TIMEOUT).await.is_ok(), is_accepted);
        }
    }

    #[test]
    fn files_that_are_no_certificates_are_refused_at_the_start() {
        let certificates = Certificates::create();
        let files = [("server.key", "client.pem"), ("ca.pem", "client.key")];
        for (authority, certificate) in files {
            let settings = StreamSettings {
                url: "rediss://localhost".to_owned(),
                ca_certificate: Some(certificates.path(authority)),
                certificate: Some(certificates.path(certificate)),
                key: Some(certificates.path("client.key")),
                ..StreamSettings::default()
            };
            assert!(Node::of_stream(&settings, "test").is_err(), "{authority}, {certificate}");
        }
    }
}
