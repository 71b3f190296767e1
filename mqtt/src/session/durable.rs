//! Sessions and messages in the store, so that they outlive the process.
//!
//! All records of an application share its tag, so that one commit covers a publication for all of its sessions.

mod claim;
mod lease;
mod presented;
mod record;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, atomic::AtomicU64},
};

use bytes::Bytes;
use server::seal::SealingKeys;
use store::{Batch, Commit, Entry, Error, GET_KEYS_MAX, Key, LIST_MAX, Store, Tag, Version};
use tokio::sync::{Semaphore, SemaphorePermit};
use types::{AppId, Clock, Random};

pub(crate) use self::{
    claim::{AdoptedSessions, Claimed},
    lease::{LiveProcesses, RENEW_INTERVAL},
    record::{LogRecord, SessionRecord, SubscriptionRecord},
};

/// Lifetime in the store of a message that clients do not acknowledge.
const MESSAGE_EXPIRY_MS: u64 = 7 * 24 * 3600 * 1000;

/// Time that the record of a connected client's session is kept, added to the session's own expiry. The record is
/// written again long before.
const CONNECTED_EXPIRY_MS: u64 = 24 * 3600 * 1000;

/// Maximum number of applications loaded at the same time.
pub(crate) const LOADS_MAX: usize = 16;

/// Use of a store by one process or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Only this one: whatever others left behind is its own.
    Alone,
    /// Any number. Each holds a lease, and keeps its sessions while it lives.
    Shared,
}

/// Stored sessions of all applications, some of which belong to this process.
pub struct Durable {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    sharing: Sharing,
    /// The name of this instance, which others may have too.
    instance: String,
    /// Differs for each process.
    process: String,
    claims: AtomicU64,
    /// One is held while the log of an application is in memory as a whole.
    log_turns: Semaphore,
    /// Seals the credentials of clients.
    sealing: Option<(SealingKeys, Arc<dyn Random>)>,
}

/// A message in the log of an application.
pub(crate) struct Logged {
    pub(crate) key: Key,
    pub(crate) number: u64,
    pub(crate) record: LogRecord,
}

/// The messages of an application's log, in order.
#[derive(Default)]
pub(crate) struct WholeLog<'a> {
    pub(crate) messages: Vec<Logged>,
    _turn: Option<SemaphorePermit<'a>>,
}

impl Durable {
    /// Sessions in `store`. `instance` is the name of this instance, and `process` differs for each process.
    pub fn new(store: Arc<dyn Store>, sharing: Sharing, instance: String, process: u64, clock: Arc<dyn Clock>) -> Self {
        let (process, claims) = (format!("{process:016x}"), AtomicU64::new(0));
        let log_turns = Semaphore::new(LOADS_MAX);
        Self { store, clock, sharing, instance, process, claims, log_turns, sealing: None }
    }

    /// Keeps the credentials of clients with their sessions, sealed, so that they can be checked after a restart while
    /// their clients are away.
    pub fn with_sealing(self, keys: SealingKeys, random: Arc<dyn Random>) -> Self {
        Self { sealing: Some((keys, random)), ..self }
    }

    /// The versions of the records that name the owners of these sessions. A session without owner is not stored.
    pub(crate) async fn owners(&self, app_id: &AppId, ids: &[Arc<str>]) -> Result<HashMap<Arc<str>, Version>, Error> {
        let mut owners = HashMap::new();
        for ids in ids.chunks(GET_KEYS_MAX) {
            let keys: Vec<_> = ids.iter().map(|id| owner_key(app_id, id)).collect::<Result<_, _>>()?;
            let found = self.store.get(&keys).await?.into_iter().zip(ids);
            owners.extend(found.filter_map(|(entry, id)| Some((Arc::clone(id), entry?.version))));
        }
        Ok(owners)
    }

    /// The applications that may have sessions.
    pub(crate) async fn applications(&self) -> Result<Vec<AppId>, Error> {
        let entries = self.list(&index_key("")?).await?;
        Ok(entries.iter().filter_map(|entry| last_level(&entry.key).parse().ok()).collect())
    }

    /// The log of an application, in order. It may be large, so few are read at the same time: the next when one of
    /// them is dropped.
    pub(crate) async fn log(&self, app_id: &AppId) -> Result<WholeLog<'_>, Error> {
        // The semaphore is never closed.
        let turn = self.log_turns.acquire().await.ok();
        let decode = |Entry { key, value, .. }: Entry| {
            Some(Logged { number: number(&key)?, key, record: LogRecord::decode(value)? })
        };
        let messages = self.list(&log_key(app_id, "")?).await?.into_iter().filter_map(decode).collect();
        Ok(WholeLog { messages, _turn: turn })
    }

    /// The number of the next message of a log, if it is not to be smaller than `next`. It is greater only if the clock
    /// went back, or another's is ahead.
    pub(crate) async fn next_number(&self, app_id: &AppId, next: u64) -> Result<u64, Error> {
        let mut after = log_key(app_id, &number_level(next))?;
        let (mut next, mut limit) = (next, 1);
        loop {
            let page = self.store.list(&log_key(app_id, "")?, Some(&after), limit).await?;
            let Some(last) = page.last() else { return Ok(next) };
            next = next.max(number(&last.key).unwrap_or_default() + 1);
            (after, limit) = (last.key.clone(), LIST_MAX);
        }
    }

    /// The sessions of an application, whoever owns them.
    pub(crate) async fn session_ids(&self, app_id: &AppId) -> Result<HashSet<String>, Error> {
        let owners = self.list(&owner_key(app_id, "")?).await?;
        Ok(owners.iter().map(|owner| last_level(&owner.key).to_owned()).collect())
    }

    /// A number for the first message of a log, greater than any that earlier processes used.
    pub(crate) fn first_number(&self) -> u64 {
        self.now_ms() << 20
    }

    /// The key of a message in the log.
    pub(crate) fn message_key(&self, app_id: &AppId, number: u64) -> Result<Key, Error> {
        log_key(app_id, &format!("{}-{}", number_level(number), self.process))
    }

    pub(crate) fn put_message(&self, batch: Batch, key: Key, value: Bytes) -> Batch {
        batch.put_until(key, value, self.now_ms() + MESSAGE_EXPIRY_MS)
    }

    /// Saves a session. The record expires with it, even if no process is left to delete it.
    pub(crate) fn put_session(
        &self,
        batch: Batch,
        app_id: &AppId,
        id: &str,
        record: &SessionRecord,
    ) -> Result<Batch, Error> {
        let (key, value) = (session_key(app_id, id)?, record.encode());
        let since = record.away_since_ms.unwrap_or_else(|| self.now_ms() + CONNECTED_EXPIRY_MS);
        Ok(batch.put_until(key, value, since.saturating_add(record.expiry_ms)))
    }

    pub(crate) fn expect_owner(
        &self,
        batch: Batch,
        app_id: &AppId,
        id: &str,
        version: Version,
    ) -> Result<Batch, Error> {
        Ok(batch.expect(owner_key(app_id, id)?, version))
    }

    pub(crate) fn delete_session(&self, batch: Batch, app_id: &AppId, id: &str) -> Result<Batch, Error> {
        Ok(batch.delete(session_key(app_id, id)?).delete(owner_key(app_id, id)?))
    }

    pub(crate) async fn commit(&self, batch: Batch) -> Result<Commit, Error> {
        self.store.commit(batch).await
    }

    /// Remembers that an application may have sessions. It has another tag, so this comes first.
    async fn put_index(&self, app_id: &AppId) -> Result<(), Error> {
        let key = index_key(app_id.as_str())?;
        if self.store.get_one(&key).await?.is_some() {
            return Ok(());
        }
        self.store.commit(Batch::new().put(key, Bytes::new())).await.map(drop)
    }

    async fn list(&self, prefix: &Key) -> Result<Vec<Entry>, Error> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let page = self.store.list(prefix, entries.last().map(|entry| &entry.key), LIST_MAX).await?;
            let is_last = page.len() < LIST_MAX;
            entries.extend(page);
            if is_last {
                return Ok(entries);
            }
        }
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    fn now_ms(&self) -> u64 {
        self.clock.now().as_unix_ms()
    }
}

/// Returns the level of a log key for this number. Keys sort like the numbers.
fn number_level(number: u64) -> String {
    format!("{number:016x}")
}

/// The number of a message in the log.
fn number(key: &Key) -> Option<u64> {
    u64::from_str_radix(last_level(key).split('-').next()?, 16).ok()
}

/// The last level of a key's path.
fn last_level(key: &Key) -> &str {
    key.path().rsplit('/').next().unwrap_or_default()
}

fn owner_key(app_id: &AppId, id: &str) -> Result<Key, Error> {
    key(app_id, &format!("owner/{id}"))
}

fn session_key(app_id: &AppId, id: &str) -> Result<Key, Error> {
    key(app_id, &format!("session/{id}"))
}

fn log_key(app_id: &AppId, number: &str) -> Result<Key, Error> {
    key(app_id, &format!("log/{number}"))
}

fn index_key(app_id: &str) -> Result<Key, Error> {
    Key::new(&Tag::service("mqtt")?, &format!("mqtt/application/{app_id}"))
}

fn process_key(process: &str) -> Result<Key, Error> {
    Key::new(&Tag::service("mqtt")?, &format!("mqtt/process/{process}"))
}

fn key(app_id: &AppId, path: &str) -> Result<Key, Error> {
    Key::new(&Tag::application(app_id.as_str())?, &format!("mqtt/{path}"))
}
