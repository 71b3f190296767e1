//! Sessions and messages in the store, so that they outlive the process.
//!
//! All records of an application share its tag, so that one commit covers a publication for all of its sessions.

mod record;

use std::sync::Arc;

use bytes::Bytes;
use store::{Batch, Commit, Entry, Error, Key, LIST_MAX, Store, Tag, Version};
use types::{AppId, Clock};

pub(crate) use self::record::{LogRecord, SessionRecord, SubscriptionRecord};

/// Maximum number of sessions that one commit claims, each with two steps.
const CLAIMS_MAX: usize = 256;

/// How long a message is kept for clients that do not acknowledge it.
const MESSAGE_EXPIRY_MS: u64 = 7 * 24 * 3600 * 1000;

/// How often a client is given its session while other instances take it.
const CLAIM_ATTEMPTS_MAX: usize = 5;

/// Where sessions are stored, and which of them are this instance's.
pub struct Durable {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// The name of this instance, the same after a restart.
    instance: String,
    /// Distinguishes the messages of this process from those of others.
    process: String,
}

/// What the store has of a session.
pub(crate) struct Claimed {
    /// The version of the record that names its owner. Whoever writes for the session expects it.
    pub(crate) owner: Version,
    /// None if it is a new session.
    pub(crate) record: Option<SessionRecord>,
}

/// A message in the log of an application.
pub(crate) struct Logged {
    pub(crate) key: Key,
    pub(crate) number: u64,
    pub(crate) record: LogRecord,
}

impl Durable {
    /// Sessions in `store`. `instance` is the name of this instance, and `process` differs for each process.
    pub fn new(store: Arc<dyn Store>, instance: String, process: u64, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, instance, process: format!("{process:016x}") }
    }

    /// Makes this instance the owner of a session, so that nobody else can write for it.
    ///
    /// `is_new` deletes what there is of it.
    pub(crate) async fn claim(&self, app_id: &AppId, id: &str, is_new: bool) -> Result<Claimed, Error> {
        let (owner, session) = (owner_key(app_id, id)?, session_key(app_id, id)?);
        self.put_index(app_id).await?;
        let claimed = store::retry(CLAIM_ATTEMPTS_MAX, async || {
            let [found] = self.store.get_array(std::array::from_ref(&owner)).await?;
            let mut batch = Batch::new().expect_entry(&owner, found.as_ref());
            batch = batch.put(owner.clone(), self.instance.clone());
            if is_new {
                batch = batch.delete(session.clone());
            }
            Ok::<_, Error>((self.store.commit(batch).await? == Commit::Done).then_some(()))
        });
        let busy = Error::Unavailable { what: "take over an MQTT session", source: None };
        claimed.await?.ok_or(busy)?;
        let [owner, session] = self.store.get_array(&[owner, session]).await?;
        let owner = owner.ok_or(Error::Unavailable { what: "take over an MQTT session", source: None })?;
        Ok(Claimed { owner: owner.version, record: session.and_then(|entry| SessionRecord::decode(&entry.value)) })
    }

    /// Whether nobody has claimed the session since.
    pub(crate) async fn is_owner(&self, app_id: &AppId, id: &str, version: Version) -> Result<bool, Error> {
        let [found] = self.store.get_array(&[owner_key(app_id, id)?]).await?;
        Ok(found.is_some_and(|owner| owner.version == version))
    }

    /// The applications that may have sessions.
    pub(crate) async fn applications(&self) -> Result<Vec<AppId>, Error> {
        let entries = self.list(&index_key("")?).await?;
        Ok(entries.iter().filter_map(|entry| entry.key.path().rsplit('/').next()?.parse().ok()).collect())
    }

    /// Claims the sessions of an application that this instance, or another of the same name, owned last.
    pub(crate) async fn claim_own(&self, app_id: &AppId) -> Result<Vec<(String, Claimed)>, Error> {
        let owners = self.list(&owner_key(app_id, "")?).await?;
        let owners: Vec<_> = owners.into_iter().filter(|owner| owner.value == self.instance.as_bytes()).collect();
        for owners in owners.chunks(CLAIMS_MAX) {
            let claim = owners.iter().fold(Batch::new(), |batch, owner| {
                batch.expect(owner.key.clone(), owner.version).put(owner.key.clone(), self.instance.clone())
            });
            if self.store.commit(claim).await? == Commit::Conflict {
                tracing::warn!(%app_id, "another instance has just taken over MQTT sessions of this application");
                return Ok(Vec::new());
            }
        }
        let mut sessions = Vec::new();
        for owner in owners {
            let id = owner.key.path().rsplit('/').next().unwrap_or_default().to_owned();
            let [owner, session] = self.store.get_array(&[owner.key, session_key(app_id, &id)?]).await?;
            let record = session.and_then(|entry| SessionRecord::decode(&entry.value));
            match (owner, record) {
                (Some(owner), Some(record)) => {
                    sessions.push((id, Claimed { owner: owner.version, record: Some(record) }));
                }
                // It has expired.
                (Some(owner), None) => {
                    let delete = Batch::new().expect(owner.key.clone(), owner.version).delete(owner.key);
                    _ = self.store.commit(delete).await?;
                }
                (None, _) => {}
            }
        }
        Ok(sessions)
    }

    /// The log of an application, in order.
    pub(crate) async fn log(&self, app_id: &AppId) -> Result<Vec<Logged>, Error> {
        let decode = |Entry { key, value, .. }: Entry| {
            let number = u64::from_str_radix(key.path().rsplit('/').next()?.split('-').next()?, 16).ok()?;
            Some(Logged { key, number, record: LogRecord::decode(value)? })
        };
        Ok(self.list(&log_key(app_id, "")?).await?.into_iter().filter_map(decode).collect())
    }

    /// A number for the first message of a log, greater than any that earlier processes used.
    pub(crate) fn first_number(&self) -> u64 {
        self.now_ms() << 20
    }

    /// The key of a message in the log.
    pub(crate) fn message_key(&self, app_id: &AppId, number: u64) -> Result<Key, Error> {
        log_key(app_id, &format!("{number:016x}-{}", self.process))
    }

    pub(crate) fn put_message(&self, batch: Batch, key: Key, value: Bytes) -> Batch {
        batch.put_until(key, value, self.now_ms() + MESSAGE_EXPIRY_MS)
    }

    /// Saves a session. While its client is away, the record expires with it.
    pub(crate) fn put_session(
        &self,
        batch: Batch,
        app_id: &AppId,
        id: &str,
        record: &SessionRecord,
    ) -> Result<Batch, Error> {
        let (key, value) = (session_key(app_id, id)?, record.encode());
        Ok(match record.away_since_ms {
            None => batch.put(key, value),
            Some(away_since) => batch.put_until(key, value, away_since.saturating_add(record.expiry_ms)),
        })
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
        if let [Some(_)] = self.store.get_array(std::array::from_ref(&key)).await? {
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

    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.now().as_millis()).unwrap_or_default()
    }
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

fn key(app_id: &AppId, path: &str) -> Result<Key, Error> {
    Key::new(&Tag::application(app_id.as_str())?, &format!("mqtt/{path}"))
}
