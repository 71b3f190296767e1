//! Receives the entries of a stream, each with a handle to acknowledge it once it is dealt with.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use redis::{RedisError, RedisResult};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{connection::Node, history::History, reply::Entry, settings::StreamSettings, stream::Stream};
use crate::{backoff::Backoff, delivery::Ack};

/// Maximum number of entries that one command returns, or names.
const BATCH: usize = 256;
/// How often to look whether entries leave the stream unread.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How many acknowledgements may wait to be sent.
const ACKS_MAX: usize = 4096;

/// What to read.
pub(crate) struct StreamSubscription {
    pub(crate) node: Node,
    pub(crate) settings: StreamSettings,
    pub(crate) key: String,
    /// The name of this process in the group: what it left unfinished, it continues with after a restart.
    pub(crate) consumer: String,
    /// Maximum number of entries that are not acknowledged yet.
    pub(crate) in_flight_max: u16,
}

/// An entry that was received.
pub(crate) struct StreamEntry {
    pub(crate) name: String,
    pub(crate) value: Vec<u8>,
    pub(crate) ack: Ack,
}

/// A consumer that connects again by itself.
pub(crate) struct StreamSubscriber {
    subscribed: watch::Receiver<bool>,
    in_flight: Arc<Semaphore>,
    in_flight_max: u16,
    draining: CancellationToken,
    tasks: [AbortOnDropHandle<()>; 2],
}

impl StreamSubscriber {
    /// Connects in the background; `receive` must not block.
    pub(crate) fn start(
        subscription: StreamSubscription,
        receive: impl Fn(StreamEntry) + Send + Sync + 'static,
    ) -> Self {
        let in_flight_max = subscription.in_flight_max.max(1);
        let in_flight = Arc::new(Semaphore::new(in_flight_max.into()));
        let (subscribed_sender, subscribed) = watch::channel(false);
        let (acks, acknowledged) = mpsc::channel(ACKS_MAX);
        let (draining, in_progress) = (CancellationToken::new(), InProgress::default());
        let subscription = Arc::new(subscription);
        let reader = Reader {
            subscription: subscription.clone(),
            receive,
            in_flight: in_flight.clone(),
            in_progress: in_progress.clone(),
            acks,
            subscribed: subscribed_sender,
            history: History::default(),
        };
        let tasks = [
            tokio::spawn(reader.run(draining.clone())),
            tokio::spawn(acknowledge(subscription, acknowledged, in_progress)),
        ];
        Self { subscribed, in_flight, in_flight_max, draining, tasks: tasks.map(AbortOnDropHandle::new) }
    }

    /// Whether the stream is being read, now and as it changes.
    pub(crate) fn subscribed(&self) -> watch::Receiver<bool> {
        self.subscribed.clone()
    }

    /// Reads no more, and waits until what is in progress is acknowledged or given up.
    pub(crate) async fn drain(self) {
        self.draining.cancel();
        // It fails only for a closed semaphore, which this one never is.
        drop(self.in_flight.acquire_many(self.in_flight_max.into()).await);
        for task in self.tasks {
            // A panic of the task has been logged.
            _ = task.await;
        }
    }
}

/// The ids of entries that are being worked on.
#[derive(Clone, Default)]
struct InProgress(Arc<Mutex<HashSet<String>>>);

impl InProgress {
    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        // A panic elsewhere leaves the set usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Reader<F> {
    subscription: Arc<StreamSubscription>,
    receive: F,
    in_flight: Arc<Semaphore>,
    in_progress: InProgress,
    acks: mpsc::Sender<String>,
    subscribed: watch::Sender<bool>,
    history: History,
}

impl<F: Fn(StreamEntry)> Reader<F> {
    async fn run(mut self, draining: CancellationToken) {
        let (mut backoff, mut is_failing) = (Backoff::new(), false);
        loop {
            let failed = tokio::select! {
                failed = self.serve() => failed,
                () = draining.cancelled() => return,
            };
            if self.subscribed.send_replace(false) {
                backoff.reset();
                is_failing = false;
            }
            if let Err(error) = failed {
                report(&error, &self.subscription.node, is_failing);
            }
            is_failing = true;
            tokio::select! {
                () = backoff.pause() => {}
                () = draining.cancelled() => return,
            }
        }
    }

    /// Reads until something fails.
    async fn serve(&mut self) -> RedisResult<()> {
        let StreamSubscription { node, settings, key, consumer, .. } = &*self.subscription.clone();
        let mut stream = Stream::open(node, settings, key, consumer).await?;
        stream.create_group().await?;
        self.continue_own(&mut stream).await?;
        tracing::info!(redis = node.url, key, "reading the stream");
        self.subscribed.send_replace(true);
        let idle = Duration::from_millis(settings.claim_after_ms);
        self.history.start(stream.progress().await?);
        let (mut claim_at, mut look_at) = (Instant::now(), Instant::now());
        loop {
            if Instant::now() >= claim_at {
                self.renew(&mut stream).await?;
                self.take_over(&mut stream, idle).await?;
                claim_at = Instant::now() + idle / 3;
            }
            let permits = self.permits().await;
            let entries = stream.read_new(permits.num_permits()).await?;
            self.deliver(entries, permits);
            if Instant::now() >= look_at {
                self.history.look(stream.progress().await?);
                look_at = Instant::now() + LOOK_EVERY;
            }
        }
    }

    /// Delivers what this consumer had received before its connection, or its process, ended.
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

    /// Takes over what dead consumers left.
    async fn take_over(&mut self, stream: &mut Stream, idle: Duration) -> RedisResult<()> {
        let mut cursor = "0-0".to_owned();
        loop {
            let permits = self.permits().await;
            let (next, entries, gone) = stream.claim(&cursor, idle, permits.num_permits()).await?;
            if !entries.is_empty() {
                tracing::warn!(entries = entries.len(), "took over what another bridge left");
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

    /// Keeps other consumers from taking over what is in progress here.
    async fn renew(&self, stream: &mut Stream) -> RedisResult<()> {
        let ids: Vec<String> = self.in_progress.lock().iter().cloned().collect();
        for ids in ids.chunks(BATCH) {
            stream.renew(ids).await?;
        }
        Ok(())
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
            // What is in progress is listed among this consumer's entries, too.
            let is_new = !self.in_progress.lock().contains(&id);
            let Some(permit) = is_new.then(|| permits.split(1)).flatten() else { continue };
            self.in_progress.lock().insert(id.clone());
            let acks = self.acks.clone();
            let acknowledge = async move {
                // It fails when the process ends.
                _ = acks.send(id).await;
            };
            let ack = Ack::new(acknowledge, permit);
            let Some((name, value)) = field else {
                self.history.lose(1);
                tokio::spawn(ack.acknowledge());
                continue;
            };
            (self.receive)(StreamEntry { name, value, ack });
        }
    }
}

/// Acknowledges entries, many at once, however long the server is away; until nobody can send more.
async fn acknowledge(
    subscription: Arc<StreamSubscription>,
    mut acknowledged: mpsc::Receiver<String>,
    in_progress: InProgress,
) {
    let (mut stream, mut ids) = (None, Vec::new());
    while acknowledged.recv_many(&mut ids, BATCH).await > 0 {
        let mut backoff = Backoff::new();
        while let Err(error) = try_acknowledge(&subscription, &mut stream, &ids).await {
            tracing::debug!(%error, "cannot acknowledge entries");
            stream = None;
            backoff.pause().await;
        }
        let mut in_progress = in_progress.lock();
        ids.drain(..).for_each(|id| _ = in_progress.remove(&id));
    }
}

async fn try_acknowledge(
    subscription: &StreamSubscription,
    stream: &mut Option<Stream>,
    ids: &[String],
) -> RedisResult<()> {
    let StreamSubscription { node, settings, key, consumer, .. } = subscription;
    let stream = match stream {
        Some(stream) => stream,
        None => stream.insert(Stream::open(node, settings, key, consumer).await?),
    };
    stream.acknowledge(ids).await
}

/// Logs why reading ended; repeated failures only in detail.
fn report(error: &RedisError, node: &Node, is_failing: bool) {
    let redis = &node.url;
    if is_failing {
        tracing::debug!(redis, %error, "still cannot read the stream");
    } else if matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM")) {
        tracing::error!(redis, %error, "Redis refuses: check `username`, `password_file` and the user's rights");
    } else if error.code() == Some("WRONGTYPE") {
        tracing::error!(redis, %error, "the key is no stream: check `key_prefix`, which is ChirpStack's");
    } else {
        tracing::warn!(redis, %error, "cannot read the stream: trying again");
    }
}
