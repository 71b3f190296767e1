//! Adds entries to a stream; each counts as published once the server has confirmed it.

use std::time::Duration;

use bytes::Bytes;
use redis::{RedisResult, pipe};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    advice::advice,
    connection::{Connection, RESPONSE_TIMEOUT},
    node::Node,
};
use crate::backoff::Backoff;

/// Maximum number of entries that are sent at once.
const BATCH: usize = 256;
/// Maximum number of entries that wait to be sent.
const QUEUE_MAX: usize = 4096;
/// Time without entries after which the server is asked whether it is there.
const IDLE: Duration = Duration::from_secs(5);

/// A stream to write.
pub struct StreamTarget {
    /// The server.
    pub node: Node,
    /// The key of the stream.
    pub key: String,
    /// Approximate number of entries that the stream keeps.
    pub length_max: u64,
}

/// A connection for adding entries that is made again when it is lost. While it is down, entries wait.
pub struct StreamPublisher {
    queue: mpsc::Sender<Addition>,
    connected: watch::Receiver<bool>,
    _task: AbortOnDropHandle<()>,
}

struct Addition {
    name: String,
    value: Bytes,
    done: oneshot::Sender<()>,
}

impl StreamPublisher {
    /// Connects in the background.
    pub fn start(target: StreamTarget) -> Self {
        let (queue, additions) = mpsc::channel(QUEUE_MAX);
        let (sender, connected) = watch::channel(false);
        let task = Task { target, additions, unconfirmed: Vec::new(), connected: sender };
        Self { queue, connected, _task: AbortOnDropHandle::new(tokio::spawn(task.run())) }
    }

    /// Returns a receiver of the state of the connection: true while the server is connected.
    pub fn connected(&self) -> watch::Receiver<bool> {
        self.connected.clone()
    }

    /// Adds an entry with one field, and waits until the server has confirmed it, however long it is away; false if the
    /// bridge stops before.
    pub async fn publish(&self, name: String, value: Bytes) -> bool {
        let (done, confirmed) = oneshot::channel();
        self.queue.send(Addition { name, value, done }).await.is_ok() && confirmed.await.is_ok()
    }
}

struct Task {
    target: StreamTarget,
    additions: mpsc::Receiver<Addition>,
    /// Sent, or about to be sent, in order.
    unconfirmed: Vec<Addition>,
    connected: watch::Sender<bool>,
}

impl Task {
    async fn run(mut self) {
        let (mut backoff, mut is_failing) = (Backoff::default(), false);
        while let Err(error) = self.serve().await {
            if self.connected.send_replace(false) {
                backoff.reset();
                is_failing = false;
            }
            let (redis, key) = (&self.target.node.url, &self.target.key);
            match advice(&error) {
                _ if is_failing => tracing::debug!(redis, key, %error, "still cannot write the stream"),
                Some(advice) => tracing::error!(redis, key, %error, "cannot write the stream: {advice}"),
                None => tracing::warn!(redis, key, %error, "cannot write the stream: trying again"),
            }
            is_failing = true;
            backoff.pause().await;
        }
    }

    /// Adds entries until something fails, or until nobody can publish any more.
    async fn serve(&mut self) -> RedisResult<()> {
        let mut connection = Connection::open(&self.target.node, RESPONSE_TIMEOUT).await?;
        loop {
            // What an error left goes first, and shows whether entries can be added again.
            if self.unconfirmed.is_empty() {
                self.connected.send_replace(true);
                let received = timeout(IDLE, self.additions.recv_many(&mut self.unconfirmed, BATCH)).await;
                match received {
                    Ok(0) => return Ok(()),
                    Ok(_) => {}
                    Err(_) => {
                        connection.check().await?;
                        continue;
                    }
                }
            }
            self.add(&mut connection).await?;
        }
    }

    async fn add(&mut self, connection: &mut Connection) -> RedisResult<()> {
        let mut commands = pipe();
        for Addition { name, value, .. } in &self.unconfirmed {
            let StreamTarget { key, length_max, .. } = &self.target;
            let command = commands.cmd("XADD").arg(key).arg("MAXLEN").arg("~").arg(*length_max);
            command.arg("*").arg(name).arg(&**value).ignore();
        }
        commands.exec_async(connection).await?;
        for addition in self.unconfirmed.drain(..) {
            // Nobody waits for it if the bridge is stopping.
            _ = addition.done.send(());
        }
        Ok(())
    }
}
