//! Commits that count as made when enough replicas have them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use link::redis::Connection;
use redis::{Cmd, ErrorKind, FromRedisValue, Pipeline, RedisResult, ScriptInvocation, ServerErrorKind};
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::timeout,
};

use super::{connection, settings::RedisSettings};
use crate::Error;

/// Maximum number of changes that wait for replicas at the same time.
const CONNECTIONS: usize = 16;

/// Connections for commits that replicas confirm.
pub(super) struct ConfirmedCommits {
    /// Each sends one change at a time. A change sent behind one that waits for replicas would be made even after we
    /// have answered that it is not, and then overwrite newer changes.
    connections: Vec<Arc<Mutex<Connection>>>,
    next: AtomicUsize,
    replicas: u8,
    wait_max: Duration,
}

impl ConfirmedCommits {
    /// Connects; `None` if no replica needs to confirm anything.
    pub(super) async fn open(settings: &RedisSettings) -> Result<Option<Self>, Error> {
        let replicas = settings.confirming_replicas;
        if replicas == 0 {
            return Ok(None);
        }
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            connections.push(Arc::new(Mutex::new(connection::open(settings).await?)));
        }
        // Shorter than the response may take, so that the server's answer says what is wrong.
        let wait_max = Duration::from_millis(settings.response_timeout_ms / 2).max(Duration::from_millis(1));
        Ok(Some(Self { connections, next: AtomicUsize::new(0), replicas, wait_max }))
    }

    /// Runs the script of a commit, and waits until enough replicas have its changes.
    pub(super) async fn run(&self, call: &ScriptInvocation<'_>) -> RedisResult<bool> {
        let mut commands = Pipeline::new();
        commands.invoke_script(call);
        let result = self.confirm(commands.clone()).await;
        if !result.as_ref().is_err_and(is_unknown_script) {
            return result;
        }
        call.load_async(&mut *self.connection().await?).await?;
        self.confirm(commands).await
    }

    /// Sets a key, and waits until enough replicas have it.
    pub(super) async fn set(&self, command: Cmd) -> RedisResult<()> {
        let mut commands = Pipeline::new();
        commands.add_command(command);
        self.confirm::<String>(commands).await.map(drop)
    }

    /// Waits until a connection is free.
    async fn connection(&self) -> RedisResult<OwnedMutexGuard<Connection>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(connection) = self.connections.get(number % CONNECTIONS) else {
            return Err((ErrorKind::Client, "no connection").into());
        };
        let free = timeout(self.wait_max, Arc::clone(connection).lock_owned()).await;
        free.map_err(|_| (ErrorKind::Io, "too many changes wait for replicas").into())
    }

    /// Sends commands and waits for replicas.
    async fn confirm<T: FromRedisValue + Send + 'static>(&self, mut commands: Pipeline) -> RedisResult<T> {
        let (replicas, connection) = (self.replicas, self.connection().await?);
        commands.cmd("WAIT").arg(replicas).arg(self.wait_max.as_millis() as u64);
        // A task of its own, because the connection stays blocked when the caller waits no longer.
        let confirming = tokio::spawn(confirm(connection, commands, replicas));
        confirming.await.unwrap_or_else(|_| Err((ErrorKind::Io, "the process ends").into()))
    }
}

/// Sends commands, the last of which waits for replicas, on one connection: a replica confirms what this connection
/// wrote before, and nothing if it is a new one.
async fn confirm<T: FromRedisValue>(
    mut connection: OwnedMutexGuard<Connection>,
    commands: Pipeline,
    replicas: u8,
) -> RedisResult<T> {
    let (value, confirming): (T, u64) = commands.query_async(&mut *connection).await?;
    if confirming < u64::from(replicas) {
        connection.give_up();
        return Err((ErrorKind::Io, "too few replicas confirm the change").into());
    }
    Ok(value)
}

fn is_unknown_script(error: &redis::RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}
