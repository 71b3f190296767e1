//! A connection to a single server, to the primary that sentinels name, or to a cluster, which is made again when it
//! breaks.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use redis::{
    Cmd, FromRedisValue, Pipeline, RedisError, RedisFuture, RedisResult, Value,
    aio::ConnectionLike,
    cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo, SingleNodeRoutingInfo},
    cmd, from_redis_value,
};
use tokio::time::Instant;

use super::{
    connector::{Connected, Connector, check_primary},
    node::Node,
};

/// Maximum time to wait for a response; longer than a read waits for new entries.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);
/// Time for which a failure to connect is the answer to all calls, so that they do not flood the servers.
const PAUSE: Duration = Duration::from_millis(100);
/// Error codes of a server that is not the primary, or no longer.
const NOT_PRIMARY: [&str; 4] = ["READONLY", "MASTERDOWN", "UNBLOCKED", "NOREPLICAS"];

/// A connection that is made again by the command after one that failed because it broke.
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
    is_behind_sentinels: bool,
    db: i64,
}

struct Shared {
    /// Never locked for long, so that a command that failed does not wait for whoever connects.
    current: Mutex<Current>,
    /// Held while somebody connects: the others wait for the result.
    attempts: tokio::sync::Mutex<Attempts>,
}

#[derive(Default)]
struct Current {
    connected: Option<Connected>,
    /// Counts connections, so that an error gives up none but the one that it came from.
    generation: u64,
    /// True if the last one was given up.
    is_given_up: bool,
}

struct Attempts {
    connector: Connector,
    failure: Option<(Instant, RedisError)>,
}

impl Connection {
    /// Connects; a node of a cluster leads to all of it. Fails when the server does not answer.
    pub async fn open(node: &Node, response_timeout: Duration) -> RedisResult<Self> {
        let connector = Connector::new(node.clone(), response_timeout);
        let attempts = tokio::sync::Mutex::new(Attempts { connector, failure: None });
        let shared = Shared { current: Mutex::default(), attempts };
        shared.connection().await?;
        Ok(Self { shared: Arc::new(shared), is_behind_sentinels: node.has_sentinels(), db: node.db() })
    }

    /// Fails if nothing can be written.
    pub async fn check(&mut self) -> RedisResult<()> {
        match self.is_behind_sentinels {
            true => check_primary(self).await,
            false => cmd("PING").exec_async(self).await,
        }
    }

    /// The addresses of the servers that have parts of the entries; one without a name if it is a single one.
    pub async fn parts(&self) -> RedisResult<Vec<String>> {
        let (Connected::Cluster(mut cluster), _) = self.shared.connection().await? else {
            return Ok(vec![String::new()]);
        };
        let primaries = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
        let answers = cluster.route_command(cmd("PING"), primaries).await?;
        let mut answers: Vec<(String, String)> = from_redis_value(answers)?;
        answers.sort();
        Ok(answers.into_iter().map(|(address, _)| address).collect())
    }

    /// Sends a command to one of [`Connection::parts`].
    pub async fn ask_part<T: FromRedisValue>(&mut self, part: &str, command: Cmd) -> RedisResult<T> {
        let address = part.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        match (self.shared.connection().await?, address) {
            ((Connected::Cluster(mut cluster), _), Some((host, port))) => {
                let node = SingleNodeRoutingInfo::ByAddress { host: host.to_owned(), port };
                Ok(from_redis_value(cluster.route_command(command, RoutingInfo::SingleNode(node)).await?)?)
            }
            _ => command.query_async(self).await,
        }
    }

    /// Looks for the primary again before the next command, because this one does not do what it should.
    pub fn give_up(&self) {
        self.shared.current.lock().give_up();
    }

    /// Gives the connection up if an error says that it leads to no primary.
    fn judge<T>(&self, result: RedisResult<T>, generation: u64) -> RedisResult<T> {
        if result.as_ref().is_err_and(leads_to_no_primary) {
            let mut current = self.shared.current.lock();
            if current.generation == generation {
                current.give_up();
            }
        }
        result
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let (connected, generation) = self.shared.connection().await?;
            let result = match connected {
                Connected::Server(mut server) => server.send_packed_command(command).await,
                Connected::Cluster(mut cluster) => cluster.req_packed_command(command).await,
            };
            self.judge(result, generation)
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let (connected, generation) = self.shared.connection().await?;
            let result = match connected {
                Connected::Server(mut server) => server.send_packed_commands(pipeline, offset, count).await,
                Connected::Cluster(mut cluster) => cluster.req_packed_commands(pipeline, offset, count).await,
            };
            self.judge(result, generation)
        })
    }

    fn get_db(&self) -> i64 {
        self.db
    }
}

impl Shared {
    /// The connection and its generation.
    async fn connection(&self) -> RedisResult<(Connected, u64)> {
        if let Some(connection) = self.made() {
            return Ok(connection);
        }
        let mut attempts = self.attempts.lock().await;
        if let Some(connection) = self.made() {
            return Ok(connection);
        }
        if let Some((at, error)) = &attempts.failure
            && at.elapsed() < PAUSE
        {
            return Err(error.clone());
        }
        if std::mem::take(&mut self.current.lock().is_given_up) {
            // The sentinel that named it may be cut off together with an old primary.
            attempts.connector.skip_sentinel();
        }
        let connected = attempts.connector.connect().await;
        attempts.failure = connected.as_ref().err().map(|error| (Instant::now(), error.clone()));
        connected.map(|connected| self.current.lock().set(connected))
    }

    fn made(&self) -> Option<(Connected, u64)> {
        let current = self.current.lock();
        current.connected.clone().map(|connected| (connected, current.generation))
    }
}

impl Current {
    fn set(&mut self, connected: Connected) -> (Connected, u64) {
        self.generation += 1;
        (self.connected.insert(connected).clone(), self.generation)
    }

    /// A cluster's stays, because it finds the primaries by itself.
    fn give_up(&mut self) {
        let given_up = self.connected.take_if(|connected| matches!(connected, Connected::Server(_)));
        self.is_given_up |= given_up.is_some();
    }
}

fn leads_to_no_primary(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_unrecoverable_error()
        || error.code().is_some_and(|code| NOT_PRIMARY.contains(&code))
}

#[cfg(test)]
mod tests {
    use redis::IntoConnectionInfo;
    use testing::{Certificates, PATIENCE, RedisProcess};
    use tokio::{
        net::TcpListener,
        time::{sleep, timeout},
    };

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

    #[tokio::test]
    async fn a_connection_that_broke_is_made_again() {
        let Some(mut redis) = RedisProcess::start() else { return };
        let settings = StreamSettings { url: redis.url(), ..StreamSettings::default() };
        let node = Node::of_stream(&settings, "test").unwrap();
        let mut connection = Connection::open(&node, RESPONSE_TIMEOUT).await.unwrap();
        redis.stop();
        assert!(connection.check().await.is_err());
        redis.start_again();
        let made_again = async {
            while connection.check().await.is_err() {
                sleep(PAUSE).await;
            }
        };
        timeout(PATIENCE, made_again).await.expect("it is not made again");
    }

    /// An attempt may take an hour by its own setting.
    #[tokio::test]
    async fn connecting_takes_no_longer_than_a_response_may() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}", silent.local_addr().unwrap());
        let address = url.as_str().into_connection_info().unwrap();
        let node = Node::with_logins(vec![address], Vec::new(), false, Duration::from_secs(3600)).unwrap();
        let opened = timeout(PATIENCE, Connection::open(&node, Duration::from_millis(50))).await;
        assert!(opened.expect("it waits").err().unwrap().is_io_error());
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
