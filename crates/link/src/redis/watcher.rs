//! Watches a stream without a consumer group: sees new entries, takes none from others and leaves nothing behind.

use std::sync::Arc;

use redis::RedisResult;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    node::Node,
    reading::{Reading, read},
    stream::Stream,
    subscriber::StreamEntry,
    subscription::StreamSubscription,
};
use crate::{
    connection_state::{ConnectionReporter, ConnectionWatch, connection_state},
    delivery::Ack,
};

/// Maximum number of entries that one command returns.
const BATCH: usize = 256;

/// A view of a stream that connects again by itself.
pub struct StreamWatcher {
    subscribed: ConnectionWatch,
    in_flight: Arc<Semaphore>,
    in_flight_max: u16,
    draining: CancellationToken,
    _task: AbortOnDropHandle<()>,
}

impl StreamWatcher {
    /// Connects in the background; `receive` must not block.
    pub fn start(subscription: StreamSubscription, receive: impl Fn(StreamEntry) + Send + Sync + 'static) -> Self {
        let in_flight_max = subscription.in_flight_max.max(1);
        let in_flight = Arc::new(Semaphore::new(in_flight_max.into()));
        let (reporter, subscribed) = connection_state();
        let draining = CancellationToken::new();
        let task = Task { subscription, receive, in_flight: in_flight.clone(), subscribed: reporter, after: None };
        let task = AbortOnDropHandle::new(tokio::spawn(read(task, draining.clone())));
        Self { subscribed, in_flight, in_flight_max, draining, _task: task }
    }

    /// Returns what is to be told of the watcher: since when it reads the stream, or why it does not.
    pub fn connection(&self) -> ConnectionWatch {
        self.subscribed.clone()
    }

    /// Returns the number of entries that are being dealt with.
    pub fn in_progress(&self) -> usize {
        usize::from(self.in_flight_max).saturating_sub(self.in_flight.available_permits())
    }

    /// Stops reading, and waits until the entries in progress are dealt with.
    pub async fn drain(self) {
        self.draining.cancel();
        // It fails only for a closed semaphore, which this one never is.
        drop(self.in_flight.acquire_many(self.in_flight_max.into()).await);
    }
}

struct Task<F> {
    subscription: StreamSubscription,
    receive: F,
    in_flight: Arc<Semaphore>,
    subscribed: ConnectionReporter,
    /// The last entry that was seen.
    after: Option<String>,
}

impl<F: Fn(StreamEntry) + Send + Sync> Reading for Task<F> {
    fn node(&self) -> &Node {
        &self.subscription.node
    }

    fn subscribed(&self) -> &ConnectionReporter {
        &self.subscribed
    }

    async fn serve(&mut self) -> RedisResult<()> {
        let StreamSubscription { node, settings, key, consumer, .. } = &self.subscription;
        let mut stream = Stream::open(node, settings, key, consumer).await?;
        let mut after = match self.after.take() {
            Some(after) => after,
            None => stream.last().await?,
        };
        loop {
            self.after = Some(after.clone());
            self.subscribed.made();
            let count = self.in_flight.available_permits().clamp(1, BATCH);
            for entry in stream.read_after(&after, count).await? {
                // It fails only for a closed semaphore, which this one never is.
                let Ok(permit) = self.in_flight.clone().acquire_owned().await else { return Ok(()) };
                after = entry.id;
                let ack = Ack::new(async {}, permit);
                if let Some((name, value)) = entry.field {
                    (self.receive)(StreamEntry { name, value: value.into(), ack });
                }
            }
        }
    }
}
