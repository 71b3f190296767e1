//! The queues of destinations in the store: bounded, in order, and beside them the dead letters.

mod ids;

use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lru::LruCache;
use serde::{Deserialize, Serialize};
use store::{Batch, Commit, Entry, Key, Store, Version};
use types::{AppId, Clock};

use self::ids::Ids;
use crate::{
    Error, Settings,
    destination::{self, Destination, last_level},
    message::{DeadLetter, Message},
};

/// How long a message waits, or stays a dead letter, before it is deleted.
const EXPIRY_MS: u64 = 7 * 24 * 3600 * 1000;
/// How long an application is remembered for which nothing was queued.
const INDEX_EXPIRY_MS: u64 = 2 * EXPIRY_MS;
/// Maximum number of messages that one commit drops.
const DROP_MAX: usize = 128;
/// How many records are deleted at once.
const DELETE_MAX: usize = 256;
/// How many destinations are known to have room.
const COUNTS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(65_535);
const ATTEMPTS_MAX: usize = 8;

/// The queues of all destinations.
pub(crate) struct Queues {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    queue_max: usize,
    dead_letters_max: usize,
    /// Whether other processes add messages to the same queues.
    is_shared: bool,
    ids: Ids,
    /// At least as many messages as the queues have, except for what other processes add.
    counts: Mutex<LruCache<Destination, usize>>,
}

/// A message in a queue.
pub(crate) struct Queued {
    pub(crate) key: Key,
    pub(crate) message: Message,
}

/// What becomes of messages that were sent.
#[derive(Default)]
pub(crate) struct Settled {
    pub(crate) delivered: Vec<Key>,
    pub(crate) dead: Vec<(Key, DeadLetter)>,
}

/// What a batch adds to the queue of a destination, once it is committed.
pub(crate) struct Growth {
    pub(crate) destination: Destination,
    messages: usize,
    pub(crate) dropped: usize,
}

/// How many messages were dropped.
#[derive(Default, Serialize, Deserialize)]
struct DroppedRecord {
    messages: usize,
}

impl Queued {
    /// The same for each attempt to deliver it.
    pub(crate) fn id(&self) -> &str {
        last_level(&self.key)
    }
}

impl Queues {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        settings: &Settings,
        is_shared: bool,
        process: u64,
    ) -> Self {
        Self {
            store,
            clock,
            queue_max: settings.queue_messages_max.max(1),
            dead_letters_max: settings.dead_letters_max,
            is_shared,
            ids: Ids::new(process),
            counts: Mutex::new(LruCache::new(COUNTS)),
        }
    }

    /// A name for a message, greater than those that this process used before.
    pub(crate) fn next_id(&self) -> String {
        self.ids.next(self.now_ms())
    }

    /// Adds messages to the queue of a destination; drops the oldest if it is full. The batch fails if others change
    /// the queue so that something else would be dropped.
    pub(crate) async fn append(
        &self,
        mut batch: Batch,
        destination: &Destination,
        messages: &[&Message],
    ) -> Result<(Batch, Growth), Error> {
        let known = self.counts().get(destination).copied();
        if self.is_shared || known.is_none() {
            self.begin_after(destination).await?;
        }
        for message in messages {
            let key = destination.queued(&self.next_id())?;
            batch = batch.put_until(key, serde_json::to_vec(message)?, self.now_ms() + EXPIRY_MS);
        }
        let mut growth = Growth { destination: destination.clone(), messages: messages.len(), dropped: 0 };
        match known {
            Some(known) if known + messages.len() <= self.queue_max => growth.messages += known,
            _ => batch = self.make_room(batch, &mut growth).await?,
        }
        Ok((batch, growth))
    }

    /// Has the next ids follow all that wait: whoever stored those may have had a clock that was ahead. What others add
    /// at the same moment may come before or after.
    async fn begin_after(&self, destination: &Destination) -> Result<(), Error> {
        let queue = destination.queue()?;
        for _ in 0..ATTEMPTS_MAX {
            let next = destination.queued(&self.next_id())?;
            if self.store.list(&queue, Some(&next), 1).await?.is_empty() {
                break;
            }
            let last = self.len(destination).await?.saturating_sub(1);
            if let Some(last) = self.store.page(&queue, last, 1).await?.entries.first() {
                self.ids.follow(last_level(&last.key));
            }
        }
        Ok(())
    }

    async fn make_room(&self, mut batch: Batch, growth: &mut Growth) -> Result<Batch, Error> {
        let page = self.store.page(&growth.destination.queue()?, 0, DROP_MAX).await?;
        growth.messages += page.total;
        let excess = growth.messages.saturating_sub(self.queue_max);
        for Entry { key, version, .. } in page.entries.into_iter().take(excess) {
            batch = batch.expect(key.clone(), version).delete(key);
            growth.dropped += 1;
        }
        growth.messages -= growth.dropped;
        if growth.dropped > 0 {
            let key = growth.destination.dropped()?;
            let [entry] = self.store.get_array(std::array::from_ref(&key)).await?;
            let DroppedRecord { messages } = dropped_record(entry.as_ref());
            let record = serde_json::to_vec(&DroppedRecord { messages: messages + growth.dropped })?;
            batch = batch.expect_entry(&key, entry.as_ref()).put_until(key, record, self.now_ms() + EXPIRY_MS);
        }
        Ok(batch)
    }

    /// Notes that a batch was committed, or that it was not.
    pub(crate) fn appended(&self, growth: &Growth, is_done: bool) {
        match is_done {
            true => self.counts().put(growth.destination.clone(), growth.messages),
            false => self.counts().pop(&growth.destination),
        };
    }

    /// The oldest messages of a queue. Those of several processes are in the order in which they were stored.
    pub(crate) async fn first(&self, destination: &Destination, limit: usize) -> Result<Vec<Queued>, Error> {
        let mut entries = self.store.list(&destination.queue()?, None, limit).await?;
        entries.sort_by_key(|entry| entry.version);
        let queued = |Entry { key, value, .. }: Entry| Ok(Queued { key, message: serde_json::from_slice(&value)? });
        entries.into_iter().map(queued).collect()
    }

    pub(crate) async fn len(&self, destination: &Destination) -> Result<usize, Error> {
        Ok(self.store.page(&destination.queue()?, 0, 1).await?.total)
    }

    pub(crate) async fn is_empty(&self, destination: &Destination) -> Result<bool, Error> {
        Ok(self.store.list(&destination.queue()?, None, 1).await?.is_empty())
    }

    /// Removes what was delivered, and puts what was given up among the dead letters. Returns false if another process
    /// has the lease by now.
    pub(crate) async fn settle(
        &self,
        destination: &Destination,
        settled: &Settled,
        lease: Option<Version>,
    ) -> Result<bool, Error> {
        let mut batch = Batch::new();
        if let Some(version) = lease {
            batch = batch.expect(destination.lease()?, version);
        }
        for key in &settled.delivered {
            batch = batch.delete(key.clone());
        }
        for (key, letter) in &settled.dead {
            let value = serde_json::to_vec(letter)?;
            let dead = destination.dead_letter(last_level(key))?;
            batch = batch.delete(key.clone()).put_until(dead, value, self.now_ms() + EXPIRY_MS);
        }
        if self.store.commit(batch).await? == Commit::Conflict {
            return Ok(false);
        }
        if !settled.dead.is_empty() {
            self.trim_dead_letters(destination).await?;
        }
        Ok(true)
    }

    async fn trim_dead_letters(&self, destination: &Destination) -> Result<(), Error> {
        let page = self.store.page(&destination.dead_letters()?, 0, DROP_MAX).await?;
        let excess = page.total.saturating_sub(self.dead_letters_max);
        let oldest = page.entries.into_iter().take(excess).map(|entry| entry.key);
        // It expects nothing, so it cannot conflict.
        _ = self.store.commit(oldest.fold(Batch::new(), Batch::delete)).await?;
        Ok(())
    }

    /// How many messages were dropped that the destination has not been told about, and what to expect when it has.
    pub(crate) async fn dropped(&self, destination: &Destination) -> Result<Option<(usize, Version)>, Error> {
        let [entry] = self.store.get_array(&[destination.dropped()?]).await?;
        let messages = dropped_record(entry.as_ref()).messages;
        Ok(entry.filter(|_| messages > 0).map(|entry| (messages, entry.version)))
    }

    /// The destination has been told about this record. What was dropped since is told next time.
    pub(crate) async fn told(&self, destination: &Destination, version: Version) -> Result<(), Error> {
        let key = destination.dropped()?;
        // After a conflict, the destination is told again.
        _ = self.store.commit(Batch::new().expect(key.clone(), version).delete(key)).await?;
        Ok(())
    }

    /// The dead letters of a destination, the oldest first, and how many there are.
    pub(crate) async fn dead_letters(
        &self,
        destination: &Destination,
        offset: usize,
        limit: usize,
    ) -> Result<(Vec<DeadLetter>, usize), Error> {
        let page = self.store.page(&destination.dead_letters()?, offset, limit).await?;
        let letter = |Entry { key, value, .. }: &Entry| {
            let letter: DeadLetter = serde_json::from_slice(value)?;
            Ok(DeadLetter { id: last_level(key).to_owned(), ..letter })
        };
        Ok((page.entries.iter().map(letter).collect::<Result<_, Error>>()?, page.total))
    }

    /// Puts dead letters at the end of the queue again: those with these ids, or all. Returns how many there were.
    pub(crate) async fn resend(&self, destination: &Destination, ids: Option<&[String]>) -> Result<usize, Error> {
        let prefix = destination.dead_letters()?;
        let (mut after, mut sent) = (None, 0);
        loop {
            let entries = self.store.list(&prefix, after.as_ref(), DROP_MAX).await?;
            let Some(last) = entries.last() else { return Ok(sent) };
            after = Some(last.key.clone());
            let is_meant = |entry: &&Entry| ids.is_none_or(|ids| ids.iter().any(|id| *id == last_level(&entry.key)));
            for entry in entries.iter().filter(is_meant) {
                sent += usize::from(self.resend_one(destination, entry).await?);
            }
        }
    }

    /// Returns false if somebody else sent or deleted it meanwhile.
    async fn resend_one(&self, destination: &Destination, entry: &Entry) -> Result<bool, Error> {
        let letter: DeadLetter = serde_json::from_slice(&entry.value)?;
        let expected = entry.version;
        let resent = store::retry(ATTEMPTS_MAX, async || {
            let [current] = self.store.get_array(std::array::from_ref(&entry.key)).await?;
            if current.is_none_or(|current| current.version != expected) {
                return Ok::<_, Error>(Some(false));
            }
            let batch = Batch::new().expect(entry.key.clone(), expected).delete(entry.key.clone());
            let (batch, growth) = self.append(batch, destination, &[&letter.message]).await?;
            let is_done = self.store.commit(batch).await? == Commit::Done;
            self.appended(&growth, is_done);
            Ok(is_done.then_some(true))
        });
        resent.await?.ok_or(Error::Conflict)
    }

    /// Deletes everything about a destination.
    pub(crate) async fn delete(&self, destination: &Destination) -> Result<(), Error> {
        self.delete_all(&destination.queue()?).await?;
        self.delete_dead_letters(destination).await?;
        self.counts().pop(destination);
        // These expect nothing, so they cannot conflict.
        _ = self.store.commit(Batch::new().delete(destination.dropped()?).delete(destination.lease()?)).await?;
        Ok(())
    }

    pub(crate) async fn delete_dead_letters(&self, destination: &Destination) -> Result<(), Error> {
        self.delete_all(&destination.dead_letters()?).await
    }

    async fn delete_all(&self, prefix: &Key) -> Result<(), Error> {
        loop {
            let entries = self.store.list(prefix, None, DELETE_MAX).await?;
            if entries.is_empty() {
                return Ok(());
            }
            let keys = entries.into_iter().map(|entry| entry.key);
            _ = self.store.commit(keys.fold(Batch::new(), Batch::delete)).await?;
        }
    }

    /// Remembers that an application may have messages in queues.
    pub(crate) async fn put_index(&self, app_id: &AppId) -> Result<(), Error> {
        let batch = Batch::new().put_until(destination::index(app_id.as_str())?, "", self.now_ms() + INDEX_EXPIRY_MS);
        _ = self.store.commit(batch).await?;
        Ok(())
    }

    /// The applications that may have messages in queues.
    pub(crate) async fn applications(&self) -> Result<Vec<AppId>, Error> {
        let (prefix, mut after) = (destination::index("")?, None);
        let mut app_ids = Vec::new();
        loop {
            let entries = self.store.list(&prefix, after.as_ref(), DELETE_MAX).await?;
            let Some(last) = entries.last() else { return Ok(app_ids) };
            after = Some(last.key.clone());
            app_ids.extend(entries.iter().filter_map(|entry| last_level(&entry.key).parse::<AppId>().ok()));
        }
    }

    /// The destinations of an application whose queues are not empty.
    pub(crate) async fn waiting(&self, app_id: &AppId) -> Result<Vec<Destination>, Error> {
        let (prefix, mut after) = (destination::queues(app_id)?, None);
        let mut waiting = Vec::new();
        loop {
            let entries = self.store.list(&prefix, after.as_ref(), 1).await?;
            let Some(entry) = entries.first() else { return Ok(waiting) };
            let Some(destination) = Destination::of_queued(app_id, &entry.key) else { return Ok(waiting) };
            after = Some(destination.after_queue()?);
            waiting.push(destination);
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.now().as_millis()).unwrap_or_default()
    }

    fn counts(&self) -> MutexGuard<'_, LruCache<Destination, usize>> {
        // No panic can leave it half changed.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A damaged record counts as none: then it is not told how many there were.
fn dropped_record(entry: Option<&Entry>) -> DroppedRecord {
    entry.and_then(|entry| serde_json::from_slice(&entry.value).ok()).unwrap_or_default()
}
