//! Stores messages for all destinations of their application at once, and tells whoever waits for that.

mod repeats;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use parking_lot::Mutex;
use server::status::ErrorChain;
use store::{Batch, Commit};
use tokio::sync::oneshot;
use types::AppId;

pub use self::repeats::{Receivers, Recipients, SpareRoom};
use crate::{
    Error,
    destination::Part,
    destinations::{Destinations, OfApplication},
    message::OutputMessage,
    metrics::{self, Fate},
    queue::{Addition, Delivery, Growth, Queues, index::Index},
    queue_workers::QueueWorkers,
};

/// Maximum number of messages of one application, and of all, that wait to be stored.
const APPLICATION_WAITING_MAX: usize = 1000;
const ALL_WAITING_MAX: usize = 50_000;
/// The same in bytes.
const APPLICATION_WAITING_BYTES_MAX: usize = 4 << 20;
const ALL_WAITING_BYTES_MAX: usize = 64 << 20;
/// Maximum number of messages stored with one commit, and of their bytes.
const COMMIT_MESSAGES_MAX: usize = 32;
const COMMIT_BYTES_MAX: usize = 256 << 10;
/// Maximum number of records for them in it: with those that are dropped, it must not exceed what the store takes.
const COMMIT_RECORDS_MAX: usize = 512;
/// Maximum number of attempts of a commit while others change the same queues or webhooks.
const ATTEMPTS_MAX: usize = 20;
/// Maximum number of applications known to be in the index.
const INDEXED_MAX: usize = 65_536;

/// Stores messages.
pub(crate) struct Appender {
    pub(crate) store: Arc<dyn store::Store>,
    pub(crate) queues: Arc<Queues>,
    pub(crate) index: Arc<Index>,
    pub(crate) destinations: Arc<Destinations>,
    pub(crate) workers: Arc<QueueWorkers>,
    pub(crate) waiting: Mutex<AllWaiting>,
    /// The applications that this process has put into the index.
    pub(crate) indexed: Mutex<HashSet<AppId>>,
}

/// The messages that wait to be stored.
#[derive(Default)]
pub(crate) struct AllWaiting {
    /// An application is here while a task stores its messages.
    applications: HashMap<AppId, WaitingMessages>,
    messages: usize,
    bytes: usize,
}

#[derive(Default)]
struct WaitingMessages {
    messages: Vec<WaitingMessage>,
    bytes: usize,
}

/// A message that waits to be stored.
struct WaitingMessage {
    message: OutputMessage,
    stored: oneshot::Sender<bool>,
}

impl WaitingMessage {
    fn bytes(&self) -> usize {
        self.message.body.get().len()
    }
}

impl AllWaiting {
    /// Returns true if there is room for a message of this size in bytes.
    fn has_room(&self, app_id: &AppId, bytes: usize) -> bool {
        let has_room = |waiting: &WaitingMessages| {
            waiting.messages.len() < APPLICATION_WAITING_MAX && waiting.bytes + bytes <= APPLICATION_WAITING_BYTES_MAX
        };
        self.messages < ALL_WAITING_MAX
            && self.bytes + bytes <= ALL_WAITING_BYTES_MAX
            && self.applications.get(app_id).is_none_or(has_room)
    }

    /// Returns whether nothing of the application waited, and no task stores it.
    fn push(&mut self, app_id: &AppId, waiting: WaitingMessage) -> bool {
        self.messages += 1;
        self.bytes += waiting.bytes();
        let is_new = !self.applications.contains_key(app_id);
        let of_application = self.applications.entry(app_id.clone()).or_default();
        of_application.bytes += waiting.bytes();
        of_application.messages.push(waiting);
        is_new
    }

    /// The messages for the next commit; none if there are no more.
    fn take(&mut self, app_id: &AppId) -> Option<Vec<WaitingMessage>> {
        let WaitingMessages { messages, bytes } = self.applications.get_mut(app_id)?;
        let mut taken_bytes = 0;
        let fits = |waiting: &&WaitingMessage| {
            taken_bytes += waiting.bytes();
            taken_bytes <= COMMIT_BYTES_MAX
        };
        // A message that is larger than a commit should be goes alone.
        let count = messages.iter().take(COMMIT_MESSAGES_MAX).take_while(fits).count().max(1).min(messages.len());
        if count == 0 {
            self.applications.remove(app_id);
            return None;
        }
        let taken: Vec<_> = messages.drain(..count).collect();
        let taken_bytes: usize = taken.iter().map(WaitingMessage::bytes).sum();
        *bytes -= taken_bytes;
        self.bytes -= taken_bytes;
        self.messages -= count;
        Some(taken)
    }
}

impl Appender {
    /// Has a message stored, after those of its application before it. Resolves when that is done; to `false`, or not
    /// at all, if it is not.
    pub(crate) fn append(
        self: &Arc<Self>,
        app_id: &AppId,
        message: OutputMessage,
    ) -> Result<oneshot::Receiver<bool>, Error> {
        let (stored, is_stored) = oneshot::channel();
        let mut all = self.waiting.lock();
        if !all.has_room(app_id, message.body.get().len()) {
            return Err(Error::Busy);
        }
        let is_new = all.push(app_id, WaitingMessage { message, stored });
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

    fn take(&self, app_id: &AppId) -> Option<Vec<WaitingMessage>> {
        self.waiting.lock().take(app_id)
    }

    async fn store(&self, app_id: &AppId, messages: &[&OutputMessage]) -> Result<(), Error> {
        let destinations = self.destinations.of(app_id).await?.len();
        for messages in messages.chunks((COMMIT_RECORDS_MAX / (destinations + 1)).max(1)) {
            match self.store_some(app_id, messages).await {
                Err(error) if error.is_full() => self.store_instead(app_id, messages).await?,
                stored => stored?,
            }
        }
        Ok(())
    }

    async fn store_some(&self, app_id: &AppId, messages: &[&OutputMessage]) -> Result<(), Error> {
        store::retry(ATTEMPTS_MAX, || self.try_store(app_id, messages)).await?.ok_or(Error::Conflict)
    }

    async fn try_store(&self, app_id: &AppId, messages: &[&OutputMessage]) -> Result<Option<()>, Error> {
        let destinations = self.destinations.of(app_id).await?;
        let deliveries = destinations.deliveries(messages);
        if deliveries.is_empty() {
            return Ok(Some(()));
        }
        self.put_index(app_id).await?;
        let (batch, limit) = (destinations.expect(Batch::new()), self.queues.limit(Part::Queue, destinations.len()));
        let Addition { batch, growths, is_whole } = self.queues.append(batch, &deliveries, limit).await?;
        let committed = self.store.commit(batch).await;
        // After an error nobody knows, so the queues are counted again.
        let is_done = matches!(committed, Ok(Commit::Done));
        self.queues.appended(&growths, is_done);
        if committed? == Commit::Conflict {
            self.destinations.forget(app_id);
            return Ok(None);
        }
        self.report(&growths);
        Ok(is_whole.then_some(()))
    }

    /// Stores messages in the place of older ones, because the owner of the application may not store more. If that
    /// is not possible either, they are dropped: others of the owner take all that there is.
    async fn store_instead(&self, app_id: &AppId, messages: &[&OutputMessage]) -> Result<(), Error> {
        let destinations = self.destinations.of(app_id).await?;
        let deliveries = destinations.deliveries(messages);
        let dropped = store::retry(ATTEMPTS_MAX, || self.queues.give_way(&deliveries)).await?;
        self.report(&dropped.ok_or(Error::Conflict)?);
        match self.store_some(app_id, messages).await {
            Err(error) if error.is_full() => self.drop_new(&destinations, &deliveries).await,
            stored => stored,
        }
    }

    async fn drop_new(&self, destinations: &OfApplication, deliveries: &[Delivery<'_>]) -> Result<(), Error> {
        let counted = store::retry(ATTEMPTS_MAX, || self.queues.count_dropped(deliveries)).await?;
        counted.ok_or(Error::Conflict)?;
        for destination in destinations.iter() {
            let dropped = deliveries.iter().filter(|delivery| delivery.to.contains(&destination)).count();
            metrics::count(destination, Fate::Dropped, dropped);
        }
        Ok(())
    }

    pub(crate) fn report(&self, growths: &[Growth]) {
        for growth in growths {
            metrics::count(&growth.destination, Fate::Dropped, growth.dropped());
            self.workers.wake(&growth.destination);
        }
    }

    pub(crate) async fn put_index(&self, app_id: &AppId) -> Result<(), Error> {
        if self.indexed.lock().contains(app_id) {
            return Ok(());
        }
        self.index.put(app_id).await?;
        let mut indexed = self.indexed.lock();
        if indexed.len() >= INDEXED_MAX {
            indexed.clear();
        }
        indexed.insert(app_id.clone());
        Ok(())
    }

    /// Has an application put into the index again with its next message.
    pub(crate) fn forget_index(&self, app_id: &AppId) {
        self.indexed.lock().remove(app_id);
    }

    /// Has all applications put into the index again with their next messages, so that it says when they had any.
    pub(crate) fn refresh_index(&self) {
        self.indexed.lock().clear();
    }
}
