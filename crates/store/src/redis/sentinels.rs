//! The primary that sentinels name, and a connection to it that follows a failover.

use std::{sync::Arc, time::Duration};

use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, FromRedisValue, Pipeline,
    RedisError, RedisFuture, RedisResult, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cmd,
};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

/// Time for which a failure to connect is the answer to all calls, so that they do not flood the sentinels.
const PAUSE: Duration = Duration::from_millis(100);
/// Error codes of a server that is not the primary, or no longer.
const NOT_PRIMARY: [&str; 4] = ["READONLY", "MASTERDOWN", "UNBLOCKED", "NOREPLICAS"];

/// A connection to the primary, wherever it is.
#[derive(Clone)]
pub(super) struct PrimaryConnection {
    state: Arc<Mutex<State>>,
    db: i64,
}

struct State {
    /// The one to ask first comes first: it answered last, or those before it named no primary.
    sentinels: Vec<Client>,
    /// The login of the servers; its host is the name of the primary.
    server: ConnectionInfo,
    config: AsyncConnectionConfig,
    /// Maximum time for connecting, with all attempts.
    wait_max: Duration,
    current: Option<MultiplexedConnection>,
    /// Counts connections, so that an error gives up none but the one that it came from.
    generation: u64,
    failure: Option<(Instant, RedisError)>,
}

impl PrimaryConnection {
    /// Connects; fails when no sentinel knows the primary, or it does not answer within `wait_max`.
    pub(super) async fn open(
        sentinels: Vec<ConnectionInfo>,
        server: ConnectionInfo,
        config: AsyncConnectionConfig,
        wait_max: Duration,
    ) -> RedisResult<Self> {
        let db = server.redis_settings().db();
        let sentinels = sentinels.into_iter().map(Client::open).collect::<RedisResult<_>>()?;
        let (current, generation, failure) = (None, 0, None);
        let state = State { sentinels, server, config, wait_max, current, generation, failure };
        let connection = Self { state: Arc::new(Mutex::new(state)), db };
        connection.current().await?;
        Ok(connection)
    }

    /// Asks the sentinels again before the next command.
    pub(super) async fn give_up(&self) {
        self.state.lock().await.give_up();
    }

    async fn current(&self) -> RedisResult<(MultiplexedConnection, u64)> {
        self.state.lock().await.connection().await
    }

    /// Gives the connection up if an error says that it leads to no primary.
    async fn judge<T>(&self, result: RedisResult<T>, generation: u64) -> RedisResult<T> {
        if result.as_ref().is_err_and(leads_to_no_primary) {
            let mut state = self.state.lock().await;
            if state.generation == generation {
                state.give_up();
            }
        }
        result
    }
}

impl ConnectionLike for PrimaryConnection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let (mut connection, generation) = self.current().await?;
            self.judge(connection.send_packed_command(command).await, generation).await
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let (mut connection, generation) = self.current().await?;
            self.judge(connection.send_packed_commands(pipeline, offset, count).await, generation).await
        })
    }

    fn get_db(&self) -> i64 {
        self.db
    }
}

impl State {
    async fn connection(&mut self) -> RedisResult<(MultiplexedConnection, u64)> {
        if let Some(connection) = &self.current {
            return Ok((connection.clone(), self.generation));
        }
        if let Some((at, error)) = &self.failure
            && at.elapsed() < PAUSE
        {
            return Err(error.clone());
        }
        match self.connect().await {
            Ok(connection) => {
                self.generation += 1;
                self.failure = None;
                Ok((self.current.insert(connection).clone(), self.generation))
            }
            Err(error) => {
                self.failure = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// Asks another sentinel first the next time: this one may be cut off together with an old primary.
    fn give_up(&mut self) {
        self.current = None;
        self.sentinels.rotate_left(1);
    }

    async fn connect(&mut self) -> RedisResult<MultiplexedConnection> {
        let mut failure = no_answer();
        // One that hangs leaves time for the others.
        let wait_max = self.wait_max / u32::try_from(self.sentinels.len()).unwrap_or(1).max(1);
        for _ in 0..self.sentinels.len() {
            let Some(sentinel) = self.sentinels.first().cloned() else { break };
            // The next one comes first even if the caller waits no longer.
            self.sentinels.rotate_left(1);
            match timeout(wait_max, self.connect_by(&sentinel)).await.unwrap_or_else(|_| Err(no_answer())) {
                Ok(connection) => {
                    self.sentinels.rotate_right(1);
                    return Ok(connection);
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Connects to the primary that a sentinel names. It may be wrong for a moment, so the server is asked, too.
    async fn connect_by(&self, sentinel: &Client) -> RedisResult<MultiplexedConnection> {
        let address = primary_address(sentinel, &self.server, &self.config).await?;
        let server = Client::open(self.server.clone().set_addr(address))?;
        let mut connection = server.get_multiplexed_async_connection_with_config(&self.config).await?;
        let role: Vec<Value> = cmd("ROLE").query_async(&mut connection).await?;
        if role.first().and_then(|role| String::from_redis_value_ref(role).ok()).as_deref() == Some("master") {
            Ok(connection)
        } else {
            Err((ErrorKind::Io, "the server is not the primary yet, or no longer").into())
        }
    }
}

/// Asks a sentinel for the address of the primary that it knows by the host of `server`.
pub async fn primary_address(
    sentinel: &Client,
    server: &ConnectionInfo,
    config: &AsyncConnectionConfig,
) -> RedisResult<ConnectionAddr> {
    let mut sentinel = sentinel.get_multiplexed_async_connection_with_config(config).await?;
    let name = name(server);
    let found: Option<(String, u16)> =
        cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(name).query_async(&mut sentinel).await?;
    let Some((host, port)) = found else {
        let what = "the sentinels know no primary of this name";
        return Err((ErrorKind::MasterNameNotFoundBySentinel, what, name.to_owned()).into());
    };
    Ok(address(server, host, port))
}

fn leads_to_no_primary(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_unrecoverable_error()
        || error.code().is_some_and(|code| NOT_PRIMARY.contains(&code))
}

fn no_answer() -> RedisError {
    (ErrorKind::Io, "no sentinel answers").into()
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
