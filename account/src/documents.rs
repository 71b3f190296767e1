//! JSON documents in the store, read and replaced as a whole.
//!
//! A document is an aggregate: rules that span its parts are checked on what was read, and the store refuses the
//! replacement if the document changed in between.

pub(crate) mod id_index;

use std::sync::Arc;

use serde::{
    Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use server::rate_limit::{RateLimit, RateLimitExceeded};
use store::{Batch, Commit, Entry, Key, Store, Version};
use types::Timestamp;

use crate::{Error, Result};

/// Number of documents that one call to the store reads.
const READ_MAX: usize = 100;
/// Maximum number of attempts of a change while others change the same document.
const ATTEMPTS_MAX: usize = 200;
/// Maximum growth of a document by a change that deletes or ends something, in bytes.
const SMALL_CHANGE_BYTES: usize = 128;

#[derive(Clone)]
pub(crate) struct Documents {
    store: Arc<dyn Store>,
}

/// A document as read, with its version.
#[derive(Debug)]
pub(crate) struct Document<T> {
    pub(crate) value: T,
    key: Key,
    version: Version,
    /// Its size in the store.
    bytes: usize,
}

impl Documents {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    pub(crate) async fn read<T: DeserializeOwned>(&self, key: &Key) -> Result<Option<Document<T>>> {
        let entry = self.store.get_one(key).await?;
        entry.map(Document::parse).transpose()
    }

    /// Reads several documents, in the order of `keys`.
    pub(crate) async fn read_all<T: DeserializeOwned>(&self, keys: &[Key]) -> Result<Vec<Option<Document<T>>>> {
        let mut all = Vec::with_capacity(keys.len());
        for some in keys.chunks(READ_MAX) {
            for entry in self.store.get(some).await? {
                all.push(entry.map(Document::parse).transpose()?);
            }
        }
        Ok(all)
    }

    /// Up to `limit` keys with a prefix, in order.
    pub(crate) async fn keys(&self, prefix: &Key, limit: usize) -> Result<Vec<Key>> {
        self.keys_after(prefix, None, limit).await
    }

    /// Like [`Documents::keys`], starting after the key `after`.
    pub(crate) async fn keys_after(&self, prefix: &Key, after: Option<&Key>, limit: usize) -> Result<Vec<Key>> {
        Ok(self.store.list(prefix, after, limit).await?.into_iter().map(|entry| entry.key).collect())
    }

    /// Creates a document. Returns `false` if it exists.
    pub(crate) async fn create<T: Serialize>(&self, key: &Key, value: &T) -> Result<bool> {
        self.commit(Batch::new().expect_absent(key.clone()).put(key.clone(), json(key, value)?)).await
    }

    /// Like [`Documents::create`], but refused when its owner has used up its stored bytes, or the disk its reserve.
    pub(crate) async fn add<T: Serialize>(&self, key: &Key, value: &T) -> Result<bool> {
        self.commit(Batch::new().expect_absent(key.clone()).put(key.clone(), json(key, value)?).growing()).await
    }

    /// Creates or overwrites a document.
    pub(crate) async fn put<T: Serialize>(&self, key: &Key, value: &T) -> Result<()> {
        self.commit(Batch::new().put(key.clone(), json(key, value)?)).await.map(drop)
    }

    /// Creates a document that expires. Returns `false` if it exists.
    pub(crate) async fn create_until<T: Serialize>(&self, key: &Key, value: &T, expires: Timestamp) -> Result<bool> {
        let bytes = json(key, value)?;
        self.commit(Batch::new().expect_absent(key.clone()).put_until(key.clone(), bytes, expires.as_unix_ms())).await
    }

    /// Creates an expiring document, provided that another one of the same aggregate is unchanged.
    ///
    /// Returns `false` if that one changed, or if `key` exists.
    pub(crate) async fn create_beside<T, U: Serialize>(
        &self,
        unchanged: &Document<T>,
        key: &Key,
        value: &U,
        expires: Timestamp,
    ) -> Result<bool> {
        let bytes = json(key, value)?;
        let batch = unchanged.unchanged().expect_absent(key.clone());
        self.commit(batch.put_until(key.clone(), bytes, expires.as_unix_ms())).await
    }

    /// Deletes `taken` and creates another, expiring document of the same aggregate.
    ///
    /// Returns `false` if `taken` changed in between, or if `key` exists.
    pub(crate) async fn exchange_until<T, U: Serialize>(
        &self,
        taken: &Document<T>,
        key: &Key,
        value: &U,
        expires: Timestamp,
    ) -> Result<bool> {
        let bytes = json(key, value)?;
        let batch = taken.unchanged().expect_absent(key.clone()).delete(taken.key.clone());
        self.commit(batch.put_until(key.clone(), bytes, expires.as_unix_ms())).await
    }

    /// Replaces a document. Returns `false` if it changed since it was read.
    pub(crate) async fn replace<T: Serialize>(&self, stored: &Document<T>) -> Result<bool> {
        let bytes = json(&stored.key, &stored.value)?;
        self.commit(stored.unchanged().put(stored.key.clone(), bytes)).await
    }

    /// Like [`Documents::replace`]. If it becomes larger than it was, it is refused like [`Documents::add`].
    pub(crate) async fn update<T: Serialize>(&self, stored: &Document<T>) -> Result<bool> {
        let bytes = json(&stored.key, &stored.value)?;
        let grows = bytes.len() > stored.bytes + SMALL_CHANGE_BYTES;
        let batch = stored.unchanged().put(stored.key.clone(), bytes);
        self.commit(if grows { batch.growing() } else { batch }).await
    }

    /// Like [`Documents::replace`], for a document that expires.
    pub(crate) async fn replace_until<T: Serialize>(&self, stored: &Document<T>, expires: Timestamp) -> Result<bool> {
        let bytes = json(&stored.key, &stored.value)?;
        self.commit(stored.unchanged().put_until(stored.key.clone(), bytes, expires.as_unix_ms())).await
    }

    /// Deletes a document. Returns `false` if it changed since it was read.
    pub(crate) async fn delete<T>(&self, stored: &Document<T>) -> Result<bool> {
        self.commit(stored.unchanged().delete(stored.key.clone())).await
    }

    /// Deletes a document if it exists and does not change in between.
    pub(crate) async fn remove(&self, key: &Key) -> Result<()> {
        match self.read::<IgnoredAny>(key).await? {
            Some(stored) => self.delete(&stored).await.map(drop),
            None => Ok(()),
        }
    }

    /// Counts a call of `owner`, like [`RateLimit::take`].
    pub(crate) async fn count(
        &self,
        limit: RateLimit,
        policy: &'static str,
        owner: &str,
    ) -> Result<Option<RateLimitExceeded>> {
        Ok(limit.take(policy, owner, self.store.as_ref()).await?)
    }

    async fn commit(&self, batch: Batch) -> Result<bool> {
        Ok(matches!(self.store.commit(batch).await?, Commit::Done))
    }
}

/// Retries `attempt` while it returns `None`, which means a conflict with another writer.
///
/// Fails after too many conflicts. `what` names the document in the error.
pub(crate) async fn retried<T, Attempt>(what: &'static str, attempt: impl Fn() -> Attempt) -> Result<T>
where
    Attempt: Future<Output = Result<Option<T>>>,
{
    store::retry(ATTEMPTS_MAX, attempt).await?.ok_or(Error::Contended { what })
}

impl<T> Document<T> {
    /// A batch that fails if the document changed since it was read.
    fn unchanged(&self) -> Batch {
        Batch::new().expect(self.key.clone(), self.version)
    }
}

impl<T: DeserializeOwned> Document<T> {
    fn parse(entry: Entry) -> Result<Self> {
        let Entry { key, value, version } = entry;
        match serde_json::from_slice(&value) {
            Ok(parsed) => Ok(Self { value: parsed, key, version, bytes: value.len() }),
            Err(source) => Err(Error::Record { key: key.to_string(), source }),
        }
    }
}

fn json<T: Serialize>(key: &Key, value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|source| Error::Record { key: key.to_string(), source })
}
