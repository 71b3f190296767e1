//! Stores messages for all destinations of their application at once, and tells whoever waits for that.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use server::status::ErrorChain;
use store::{Batch, Commit};
use tokio::sync::oneshot;
use types::AppId;

use crate::{
    Error,
    destinations::Destinations,
    lanes::Lanes,
    message::Message,
    metrics::{self, Fate},
    queue::{Growth, Queues},
};

/// Maximum number of messages of one application, and of all, that wait to be stored.
const APPLICATION_WAITING_MAX: usize = 1000;
const ALL_WAITING_MAX: usize = 50_000;
/// How many messages, and how many bytes of them, are stored with one commit.
const COMMIT_MESSAGES_MAX: usize = 32;
const COMMIT_BYTES_MAX: usize = 256 << 10;
/// Maximum size of the body of a message. One that is larger is dropped.
pub const MESSAGE_BYTES_MAX: usize = 256 << 10;
/// How often a commit is repeated while others change the same queues or webhooks.
const ATTEMPTS_MAX: usize = 20;
/// How many applications are known to be in the index.
const INDEXED_MAX: usize = 65_536;

/// Stores messages.
pub(crate) struct Appender {
    pub(crate) store: Arc<dyn store::Store>,
    pub(crate) queues: Arc<Queues>,
    pub(crate) destinations: Arc<Destinations>,
    pub(crate) lanes: Arc<Lanes>,
    /// An application is here while a task stores its messages.
    pub(crate) waiting: Mutex<HashMap<AppId, Vec<Waiting>>>,
    pub(crate) waiting_count: AtomicUsize,
    /// The applications that this process has put into the index.
    pub(crate) indexed: Mutex<HashSet<AppId>>,
}

/// A message that waits to be stored.
pub(crate) struct Waiting {
    message: Message,
    stored: oneshot::Sender<bool>,
}

impl Appender {
    /// Has a message stored, after those of its application before it. Resolves when that is done; to `false`, or not
    /// at all, if it is not.
    pub(crate) fn append(self: &Arc<Self>, app_id: &AppId, message: Message) -> Result<oneshot::Receiver<bool>, Error> {
        let (stored, is_stored) = oneshot::channel();
        let mut all = self.waiting();
        let is_full = all.get(app_id).is_some_and(|waiting| waiting.len() >= APPLICATION_WAITING_MAX);
        if is_full || self.waiting_count.load(Ordering::Relaxed) >= ALL_WAITING_MAX {
            return Err(Error::Busy);
        }
        self.waiting_count.fetch_add(1, Ordering::Relaxed);
        let is_new = !all.contains_key(app_id);
        all.entry(app_id.clone()).or_default().push(Waiting { message, stored });
        drop(all);
        if is_new {
            tokio::spawn(Arc::clone(self).store_all(app_id.clone()));
        }
        Ok(is_stored)
    }

    async fn store_all(self: Arc<Self>, app_id: AppId) {
        while let Some(waiting) = self.take(&app_id) {
            let messages: Vec<_> = waiting.iter().map(|waiting| &waiting.message).collect();
            let result = self.store(&app_id, &messages).await;
            if let Err(error) = &result {
                tracing::warn!(%app_id, error = %ErrorChain(error), "cannot store messages for outputs");
            }
            // Nobody may wait for it.
            waiting.into_iter().for_each(|waiting| _ = waiting.stored.send(result.is_ok()));
        }
    }

    /// The messages for the next commit; none if there are no more.
    fn take(&self, app_id: &AppId) -> Option<Vec<Waiting>> {
        let mut all = self.waiting();
        let waiting = all.get_mut(app_id)?;
        let mut bytes = 0;
        let fits = |waiting: &&Waiting| {
            bytes += waiting.message.body.get().len();
            bytes <= COMMIT_BYTES_MAX
        };
        // A message that is larger than a commit should be goes alone.
        let count = waiting.iter().take(COMMIT_MESSAGES_MAX).take_while(fits).count().max(1).min(waiting.len());
        if count == 0 {
            all.remove(app_id);
            return None;
        }
        self.waiting_count.fetch_sub(count, Ordering::Relaxed);
        Some(waiting.drain(..count).collect())
    }

    async fn store(&self, app_id: &AppId, messages: &[&Message]) -> Result<(), Error> {
        let growths = store::retry(ATTEMPTS_MAX, || self.try_store(app_id, messages)).await?.ok_or(Error::Conflict)?;
        for growth in growths {
            metrics::count(&growth.destination, Fate::Dropped, growth.dropped);
            self.lanes.wake(&growth.destination);
        }
        Ok(())
    }

    async fn try_store(&self, app_id: &AppId, messages: &[&Message]) -> Result<Option<Vec<Growth>>, Error> {
        let destinations = self.destinations.of(app_id).await?;
        let deliveries = destinations.deliveries(app_id, messages);
        if deliveries.is_empty() {
            return Ok(Some(Vec::new()));
        }
        self.put_index(app_id).await?;
        let (mut batch, mut growths) = (destinations.expect(Batch::new()), Vec::new());
        for (destination, wanted) in deliveries {
            let (with, growth) = self.queues.append(batch, &destination, &wanted).await?;
            batch = with;
            growths.push(growth);
        }
        let committed = self.store.commit(batch).await;
        // After an error nobody knows, so the queues are counted again.
        let is_done = matches!(committed, Ok(Commit::Done));
        growths.iter().for_each(|growth| self.queues.appended(growth, is_done));
        if committed? == Commit::Conflict {
            self.destinations.forget(app_id);
        }
        Ok(is_done.then_some(growths))
    }

    async fn put_index(&self, app_id: &AppId) -> Result<(), Error> {
        if self.indexed().contains(app_id) {
            return Ok(());
        }
        self.queues.put_index(app_id).await?;
        let mut indexed = self.indexed();
        if indexed.len() >= INDEXED_MAX {
            indexed.clear();
        }
        indexed.insert(app_id.clone());
        Ok(())
    }

    /// Has applications put into the index again, before their records there expire.
    pub(crate) fn refresh_index(&self) {
        self.indexed().clear();
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<AppId, Vec<Waiting>>> {
        // No panic can leave it half changed.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn indexed(&self) -> MutexGuard<'_, HashSet<AppId>> {
        self.indexed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
