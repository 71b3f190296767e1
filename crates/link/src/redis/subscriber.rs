//! Receives the entries of a stream, each with a handle to acknowledge it once it is dealt with.

mod acknowledge;
mod history;
mod in_progress;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use redis::RedisResult;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use self::{
    acknowledge::Acknowledger,
    history::History,
    in_progress::{Held, InProgress},
};
use super::{
    node::Node,
    reading::{Reading, read},
    reply::Entry,
    stream::{Progress, Stream},
    subscription::StreamSubscription,
};
use crate::{
    connection_state::{ConnectionReporter, ConnectionWatch, connection_state},
    delivery::Ack,
};

/// Maximum number of entries that one command returns.
const BATCH: usize = 256;
/// Interval between checks whether entries leave the stream unread.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Maximum number of acknowledgements that wait to be sent.
const ACKS_MAX: usize = 4096;
/// Number of times that work on an entry may end without a result, such as in a panic, until it is given up.
const FAILURES_MAX: u32 = 3;

/// An entry that was received.
pub struct StreamEntry {
    /// The name of its field, such as `up`.
    pub name: String,
    /// Its content.
    pub value: Bytes,
    /// Acknowledges it.
    pub ack: Ack,
}

/// A consumer that connects again by itself.
pub struct StreamSubscriber {
    subscribed: ConnectionWatch,
    in_flight: Arc<Semaphore>,
    in_flight_max: u16,
    in_progress: InProgress,
    draining: CancellationToken,
    tasks: [AbortOnDropHandle<()>; 2],
}

impl StreamSubscriber {
    /// Connects in the background; `receive` must not block.
    pub fn start(subscription: StreamSubscription, receive: impl Fn(StreamEntry) + Send + Sync + 'static) -> Self {
        let in_flight_max = subscription.in_flight_max.max(1);
        let in_flight = Arc::new(Semaphore::new(in_flight_max.into()));
        let (subscribed_reporter, subscribed) = connection_state();
        let (acks, acknowledged) = mpsc::channel(ACKS_MAX);
        let (draining, in_progress) = (CancellationToken::new(), InProgress::new());
        let subscription = Arc::new(subscription);
        let reader = Reader {
            subscription: subscription.clone(),
            receive,
            in_flight: in_flight.clone(),
            in_progress: in_progress.clone(),
            acks,
            subscribed: subscribed_reporter,
            history: History::default(),
            is_blind: false,
        };
        let tasks = [
            tokio::spawn(read(reader, draining.clone())),
            tokio::spawn(Acknowledger::new(subscription, in_progress.clone()).run(acknowledged)),
        ];
        let tasks = tasks.map(AbortOnDropHandle::new);
        Self { subscribed, in_flight, in_flight_max, in_progress, draining, tasks }
    }

    /// Returns what is to be told of the reader: since when it reads the stream, or why it does not.
    pub fn connection(&self) -> ConnectionWatch {
        self.subscribed.clone()
    }

    /// Returns the number of entries that were received and are not acknowledged yet.
    pub fn in_progress(&self) -> usize {
        self.in_progress.count()
    }

    /// Stops reading, and waits until the entries in progress are acknowledged or given up.
    pub async fn drain(self) {
        self.draining.cancel();
        // It fails only for a closed semaphore, which this one never is.
        drop(self.in_flight.acquire_many(self.in_flight_max.into()).await);
        for task in self.tasks {
            // A panic of the task has been logged.
            _ = task.await;
        }
    }
}

struct Reader<F> {
    subscription: Arc<StreamSubscription>,
    receive: F,
    in_flight: Arc<Semaphore>,
    in_progress: InProgress,
    acks: mpsc::Sender<Held>,
    subscribed: ConnectionReporter,
    history: History,
    /// True once it was logged that the user may not ask for the progress of the group.
    is_blind: bool,
}

impl<F: Fn(StreamEntry) + Send + Sync> Reading for Reader<F> {
    fn node(&self) -> &Node {
        &self.subscription.node
    }

    fn subscribed(&self) -> &ConnectionReporter {
        &self.subscribed
    }

    async fn serve(&mut self) -> RedisResult<()> {
        let StreamSubscription { node, settings, key, consumer, .. } = &*self.subscription.clone();
        let mut stream = Stream::open(node, settings, key, consumer).await?;
        stream.create_group().await?;
        self.continue_own(&mut stream).await?;
        if let Some(progress) = self.progress(&mut stream).await? {
            self.history.start(progress);
        }
        tracing::info!(redis = node.url, key, "reading the stream");
        self.subscribed.made();
        let idle = Duration::from_millis(settings.claim_after_ms);
        let (mut claim_at, mut look_at) = (Instant::now(), Instant::now());
        loop {
            if Instant::now() >= claim_at {
                self.take_over(&mut stream, idle).await?;
                claim_at = Instant::now() + idle / 3;
            }
            let permits = self.permits().await;
            let entries = stream.read_new(permits.num_permits()).await?;
            self.deliver(entries, permits);
            if Instant::now() >= look_at {
                if let Some(progress) = self.progress(&mut stream).await? {
                    self.history.look(progress);
                }
                look_at = Instant::now() + LOOK_EVERY;
            }
        }
    }
}

impl<F: Fn(StreamEntry) + Send + Sync> Reader<F> {
    /// Returns the progress of the group; `None` without the right to ask for it, which reading does not need.
    async fn progress(&mut self, stream: &mut Stream) -> RedisResult<Option<Progress>> {
        match stream.progress().await {
            Err(error) if error.code() == Some("NOPERM") => {
                if !std::mem::replace(&mut self.is_blind, true) {
                    let redis = &self.subscription.node.url;
                    tracing::warn!(redis, %error, "cannot tell whether events are lost: let this user call XINFO");
                }
                Ok(None)
            }
            progress => progress.map(Some),
        }
    }

    /// Delivers entries that this consumer had received before its connection, or its process, ended.
    async fn continue_own(&mut self, stream: &mut Stream) -> RedisResult<()> {
        let mut after = "0".to_owned();
        loop {
            let permits = self.permits().await;
            let entries = stream.read_own(&after, permits.num_permits()).await?;
            let Some(last) = entries.last() else { return Ok(()) };
            after.clone_from(&last.id);
            self.deliver(entries, permits);
        }
    }

    /// Takes over the entries that dead consumers left, and those that this one received and failed to work on.
    async fn take_over(&mut self, stream: &mut Stream, idle: Duration) -> RedisResult<()> {
        let mut cursor = "0-0".to_owned();
        loop {
            let permits = self.permits().await;
            let (next, entries, gone) = stream.claim(&cursor, idle, permits.num_permits()).await?;
            if !entries.is_empty() {
                tracing::warn!(entries = entries.len(), "took over what was not acknowledged");
            }
            if !gone.is_empty() {
                self.history.lose(gone.len() as u64);
            }
            self.deliver(entries, permits);
            if next == "0-0" {
                return Ok(());
            }
            cursor = next;
        }
    }

    /// Waits for room, and takes some.
    async fn permits(&self) -> OwnedSemaphorePermit {
        let count = self.in_flight.available_permits().clamp(1, BATCH) as u32;
        // It fails only for a closed semaphore, which this one never is.
        match self.in_flight.clone().acquire_many_owned(count).await {
            Ok(permits) => permits,
            Err(_) => std::future::pending().await,
        }
    }

    fn deliver(&self, entries: Vec<Entry>, mut permits: OwnedSemaphorePermit) {
        for Entry { id, field } in entries {
            let Some(permit) = permits.split(1) else { continue };
            // What is in progress is listed among this consumer's entries, too.
            let Some(held) = self.in_progress.hold(id) else { continue };
            let is_given_up = held.failures() >= FAILURES_MAX;
            if is_given_up {
                tracing::error!(id = held.id(), "gave up an entry: working on it failed {FAILURES_MAX} times");
            }
            let ack = self.ack(held, permit);
            match field {
                Some((name, value)) if !is_given_up => (self.receive)(StreamEntry { name, value: value.into(), ack }),
                Some(_) => drop(tokio::spawn(ack.acknowledge())),
                None => {
                    self.history.lose(1);
                    tokio::spawn(ack.acknowledge());
                }
            }
        }
    }

    fn ack(&self, held: Held, permit: OwnedSemaphorePermit) -> Ack {
        let acks = self.acks.clone();
        let acknowledge = async move {
            // It fails when the process ends.
            _ = acks.send(held).await;
        };
        Ack::new(acknowledge, permit)
    }
}

#[cfg(test)]
mod tests {
    use testing::{PATIENCE, RedisProcess};
    use tokio::{
        sync::mpsc::UnboundedReceiver,
        time::{sleep, timeout},
    };

    use super::{super::settings::StreamSettings, *};

    const KEY: &[u8] = b"events";

    /// A subscriber with room for one entry.
    fn start(redis: &RedisProcess) -> (StreamSubscriber, UnboundedReceiver<StreamEntry>) {
        let settings = StreamSettings { url: redis.url(), claim_after_ms: 1000, ..StreamSettings::default() };
        let node = Node::of_stream(&settings, "test").unwrap();
        let (key, consumer) = ("events".to_owned(), "me".to_owned());
        let subscription = StreamSubscription { node, settings, key, consumer, in_flight_max: 1 };
        let (sender, entries) = mpsc::unbounded_channel();
        let receive = move |entry| drop(sender.send(entry));
        redis.call(&[b"XADD", KEY, b"*", b"up", b"x"]);
        (StreamSubscriber::start(subscription, receive), entries)
    }

    async fn next(entries: &mut UnboundedReceiver<StreamEntry>) -> StreamEntry {
        timeout(PATIENCE, entries.recv()).await.expect("no entry came").unwrap()
    }

    /// Returns the time since the entry was last renewed, in milliseconds; `None` if it is acknowledged.
    fn idle_ms(redis: &RedisProcess) -> Option<u64> {
        let pending = redis.call(&[b"XPENDING", KEY, b"airlock", b"-", b"+", b"1"]);
        pending.lines().find_map(|line| line.strip_prefix(':')).map(|idle| idle.parse().unwrap())
    }

    async fn until_acknowledged(redis: &RedisProcess) {
        let acknowledged = async {
            while idle_ms(redis).is_some() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, acknowledged).await.expect("it was not acknowledged");
    }

    #[tokio::test]
    async fn what_is_in_progress_is_renewed_while_there_is_no_room() {
        let Some(redis) = RedisProcess::start() else { return };
        let (_subscriber, mut entries) = start(&redis);
        let held = next(&mut entries).await;
        let renewals = async {
            for _ in 0..3 {
                let mut before = 0;
                loop {
                    let idle = idle_ms(&redis).unwrap();
                    if idle < before {
                        break;
                    }
                    before = idle;
                    sleep(Duration::from_millis(10)).await;
                }
            }
        };
        timeout(PATIENCE, renewals).await.expect("it was not renewed");
        held.ack.acknowledge().await;
        until_acknowledged(&redis).await;
    }

    #[tokio::test]
    async fn what_is_dropped_comes_again() {
        let Some(redis) = RedisProcess::start() else { return };
        let (_subscriber, mut entries) = start(&redis);
        drop(next(&mut entries).await);
        next(&mut entries).await.ack.acknowledge().await;
        until_acknowledged(&redis).await;
    }

    /// Otherwise it would come for ever.
    #[tokio::test]
    async fn what_fails_again_and_again_is_given_up() {
        let Some(redis) = RedisProcess::start() else { return };
        let (_subscriber, mut entries) = start(&redis);
        for _ in 0..FAILURES_MAX {
            drop(next(&mut entries).await);
        }
        until_acknowledged(&redis).await;
        assert!(entries.try_recv().is_err(), "it came once more");
    }

    /// Redis does not tell this user the length of the stream.
    #[tokio::test]
    async fn a_stream_is_read_without_the_right_to_inspect_it() {
        let Some(redis) = RedisProcess::start() else { return };
        redis.call(&[b"ACL", b"SETUSER", b"default", b"-xinfo"]);
        let (subscriber, mut entries) = start(&redis);
        next(&mut entries).await.ack.acknowledge().await;
        assert!(*subscriber.connection().connected().borrow());
    }
}
