//! One connection to a Redis server or cluster, for adding entries.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use link::redis::{Connection, Node};
use redis::{Cmd, RedisError};
use tokio::{sync::Notify, time::timeout};

use super::{advice, settings::RedisSettings};
use crate::{
    Error,
    sender::link::{Connector, LinkError},
};

/// Interval at which a server that gets no entries is pinged.
const IDLE: Duration = Duration::from_secs(5);

/// A server, or one node of a cluster, and how long it may take to respond.
pub(super) struct RedisServer {
    node: Node,
    response_timeout: Duration,
}

/// A connection for adding entries.
#[derive(Clone)]
pub(super) struct RedisConnection {
    connection: Connection,
    /// Told when something failed.
    failed: Arc<Notify>,
}

impl RedisServer {
    /// Reads the files that the settings name.
    pub(super) fn new(settings: &RedisSettings, response_timeout: Duration) -> Result<Self, Error> {
        let refused = |name: &str, reason: &str| Error::setting("redis", &settings.name, name, reason);
        let node = Node::with_sentinels(&settings.remote(), &settings.sentinels, &refused)?;
        Ok(Self { node, response_timeout })
    }
}

#[async_trait]
impl Connector for RedisServer {
    type Connection = RedisConnection;

    async fn connect(&self) -> Result<RedisConnection, LinkError> {
        let opened = Connection::open(&self.node, self.response_timeout).await;
        let connection = opened.map_err(|error| advice::lost(&error))?;
        Ok(RedisConnection { connection, failed: Arc::default() })
    }

    async fn lost(&self, mut connection: RedisConnection) -> LinkError {
        loop {
            // Neither outcome says whether the server is there.
            _ = timeout(IDLE, connection.failed.clone().notified()).await;
            if let Err(error) = connection.connection.check().await {
                return advice::lost(&error);
            }
        }
    }
}

impl RedisConnection {
    /// Runs a command, and returns when the server has confirmed it.
    pub(super) async fn run(mut self, command: &Cmd) -> Result<(), RedisError> {
        let result = command.exec_async(&mut self.connection).await;
        if result.is_err() {
            self.failed.notify_one();
        }
        result
    }
}
