//! Hears the hints of other processes: one task, one connection that only subscribes.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::StreamExt;
use redis::{
    Client, ConnectionInfo, RedisError, RedisResult,
    aio::{PubSubSink, PubSubStream},
};
use tokio::{sync::mpsc, time};

use crate::{Error, Hint, Watch, hint::Hub};

/// How many channels wait to be subscribed to.
const WAITING_MAX: usize = 1024;
/// The shortest and the longest pause before connecting again.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));
/// How often the connection is tried when nothing is heard: a dead one would look silent.
const PING_EVERY: Duration = Duration::from_secs(15);

/// Watches channels; its task ends when it is dropped.
pub(super) struct Listener {
    hub: Arc<Hub>,
    wanted: mpsc::Sender<String>,
}

/// What the task needs to connect and to pass on what it hears.
struct Task {
    nodes: Vec<ConnectionInfo>,
    prefix: String,
    timeout: Duration,
    hub: Arc<Hub>,
    wanted: mpsc::Receiver<String>,
}

/// Why the task stopped listening.
enum End {
    /// Nobody can watch any more.
    Closed,
    /// The connection is gone.
    Lost(RedisError),
}

impl From<RedisError> for End {
    fn from(error: RedisError) -> Self {
        Self::Lost(error)
    }
}

impl Listener {
    /// Starts the task; it connects when the first channel is watched.
    pub(super) fn start(nodes: Vec<ConnectionInfo>, prefix: String, timeout: Duration) -> Self {
        let hub = Arc::new(Hub::default());
        let (wanted, waiting) = mpsc::channel(WAITING_MAX);
        let task = Task { nodes, prefix, timeout, hub: Arc::clone(&hub), wanted: waiting };
        tokio::spawn(task.run());
        Self { hub, wanted }
    }

    /// Watches a channel; its first hint comes when Redis has confirmed the subscription.
    pub(super) fn watch(&self, channel: &str) -> Result<Watch, Error> {
        let watch = self.hub.watch(channel);
        self.wanted.try_send(channel.to_owned()).map_err(|error| Error::unavailable("watch a channel", error))?;
        Ok(watch)
    }
}

impl Task {
    async fn run(mut self) {
        // The hub knows every channel that is watched, this first one among them.
        if self.wanted.recv().await.is_none() {
            return;
        }
        let mut pause = BACKOFF.0;
        for node in 0.. {
            match self.listen(node, &mut pause).await {
                Ok(never) => match never {},
                Err(End::Closed) => return,
                Err(End::Lost(error)) => {
                    tracing::warn!(%error, "Lost the connection that hears hints from Redis, connecting again");
                }
            }
            time::sleep(pause).await;
            pause = (2 * pause).min(BACKOFF.1);
        }
    }

    /// Listens on one of the nodes; a cluster passes every hint to all of them.
    async fn listen(&mut self, node: usize, pause: &mut Duration) -> Result<std::convert::Infallible, End> {
        let (mut sink, mut stream) = self.connect(node).await?;
        *pause = BACKOFF.0;
        for channel in self.hub.watched() {
            self.subscribe(&mut sink, &channel).await?;
        }
        let mut ping = time::interval(PING_EVERY);
        loop {
            tokio::select! {
                channel = self.wanted.recv() => match channel {
                    Some(channel) => self.subscribe(&mut sink, &channel).await?,
                    None => return Err(End::Closed),
                },
                message = stream.next() => match message {
                    Some(message) => self.pass_on(&mut sink, &message).await?,
                    None => return Err(End::Lost((redis::ErrorKind::Io, "connection closed").into())),
                },
                _ = ping.tick() => within(self.timeout, sink.ping::<redis::Value>()).await.map(drop)?,
            }
        }
    }

    async fn connect(&self, node: usize) -> RedisResult<(PubSubSink, PubSubStream)> {
        let client = Client::open(self.nodes[node % self.nodes.len()].clone())?;
        Ok(within(self.timeout, client.get_async_pubsub()).await?.split())
    }

    async fn subscribe(&self, sink: &mut PubSubSink, channel: &str) -> RedisResult<()> {
        within(self.timeout, sink.subscribe(format!("{}{channel}", self.prefix))).await?;
        self.hub.tell(channel, Hint::Missed);
        Ok(())
    }

    async fn pass_on(&self, sink: &mut PubSubSink, message: &redis::Msg) -> RedisResult<()> {
        let name = message.get_channel_name();
        let hint = Hint::Message(Bytes::copy_from_slice(message.get_payload_bytes()));
        let heard = name.strip_prefix(&self.prefix).is_some_and(|channel| self.hub.tell(channel, hint));
        if !heard {
            within(self.timeout, sink.unsubscribe(name)).await?;
        }
        Ok(())
    }
}

async fn within<T>(limit: Duration, answer: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    let late = || RedisError::from((redis::ErrorKind::Io, "no answer in time"));
    time::timeout(limit, answer).await.map_err(|_| late())?
}
