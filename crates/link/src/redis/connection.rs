//! Connections to a single server or to a cluster.

use std::time::Duration;

use redis::{
    AsyncConnectionConfig, Cmd, Pipeline, RedisResult, Value, aio::MultiplexedConnection,
    cluster_async::ClusterConnection,
};

use super::node::Node;

/// Maximum time to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time to wait for a response; longer than a read waits for new entries.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

pub(super) enum Connection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Connection {
    /// Connects; a node of a cluster leads to all of it.
    pub(super) async fn open(node: &Node) -> RedisResult<Self> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT));
        let client = node.client()?;
        let mut single = client.get_multiplexed_async_connection_with_config(&config).await?;
        let description: String = redis::cmd("INFO").arg("cluster").query_async(&mut single).await?;
        if !description.contains("cluster_enabled:1") {
            return Ok(Self::Single(single));
        }
        let client = node.cluster().connection_timeout(CONNECT_TIMEOUT).response_timeout(RESPONSE_TIMEOUT).build()?;
        Ok(Self::Cluster(client.get_async_connection().await?))
    }

    pub(super) async fn query(&mut self, command: &Cmd) -> RedisResult<Value> {
        match self {
            Self::Single(connection) => command.query_async(connection).await,
            Self::Cluster(connection) => command.query_async(connection).await,
        }
    }
    /// Sends commands at once. An error means that some of them may not have been carried out.
    pub(super) async fn pipeline(&mut self, commands: &Pipeline) -> RedisResult<()> {
        match self {
            Self::Single(connection) => commands.exec_async(connection).await,
            Self::Cluster(connection) => commands.exec_async(connection).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use testing::{Certificates, RedisProcess};

    use super::{super::settings::StreamSettings, *};

    /// The server wants a client certificate, and both want the other's to be of their authority.
    #[tokio::test]
    async fn certificates_are_checked() {
        server::system::install_crypto();
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
            assert_eq!(Connection::open(&node).await.is_ok(), is_accepted);
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
