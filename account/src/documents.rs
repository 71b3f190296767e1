//! JSON documents in the store, each read and replaced as a whole.
//!
//! A document is one aggregate: a rule that spans its parts is checked on what was read and holds because the store
//! refuses the replacement when somebody else changed the document in between.

use std::sync::Arc;

use serde::{
    Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use store::{Batch, Commit, Entry, Key, Rate, Store, Token, Version};
use types::Timestamp;

use crate::{Error, Result};

/// How many documents are asked for at once.
const READ_MAX: usize = 100;
/// How often a change is tried again when others are faster.
const TRIES_MAX: usize = 200;

/// The documents of this service.
#[derive(Clone)]
pub(crate) struct Documents {
    store: Arc<dyn Store>,
}

/// A document as it was read.
#[derive(Debug)]
pub(crate) struct Stored<T> {
    /// What it says.
    pub(crate) value: T,
    key: Key,
    version: Version,
}

impl Documents {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Reads one document.
    pub(crate) async fn read<T: DeserializeOwned>(&self, key: &Key) -> Result<Option<Stored<T>>> {
        let found = self.store.get(std::slice::from_ref(key)).await?;
        found.into_iter().next().flatten().map(Stored::parse).transpose()
    }

    /// Reads several documents, in the order asked for.
    pub(crate) async fn read_all<T: DeserializeOwned>(&self, keys: &[Key]) -> Result<Vec<Option<Stored<T>>>> {
        let mut all = Vec::with_capacity(keys.len());
        for some in keys.chunks(READ_MAX) {
            for entry in self.store.get(some).await? {
                all.push(entry.map(Stored::parse).transpose()?);
            }
        }
        Ok(all)
    }

    /// The keys below a prefix, in order, `limit` at most.
    pub(crate) async fn keys(&self, prefix: &Key, limit: usize) -> Result<Vec<Key>> {
        self.keys_after(prefix, None, limit).await
    }

    /// The same, from behind the key `after` on.
    pub(crate) async fn keys_after(&self, prefix: &Key, after: Option<&Key>, limit: usize) -> Result<Vec<Key>> {
        Ok(self.store.list(prefix, after, limit).await?.into_iter().map(|entry| entry.key).collect())
    }

    /// Writes a new document; says `false` when there is one already.
    pub(crate) async fn create<T: Serialize>(&self, key: &Key, value: &T) -> Result<bool> {
        self.commit(Batch::new().expect_absent(key.clone()).put(key.clone(), json(key, value)?)).await
    }

    /// Writes a document whatever was there.
    pub(crate) async fn put<T: Serialize>(&self, key: &Key, value: &T) -> Result<()> {
        self.commit(Batch::new().put(key.clone(), json(key, value)?)).await.map(drop)
    }

    /// Writes a new document that vanishes at `expires`; says `false` when there is one already.
    pub(crate) async fn create_until<T: Serialize>(&self, key: &Key, value: &T, expires: Timestamp) -> Result<bool> {
        let bytes = json(key, value)?;
        self.commit(Batch::new().expect_absent(key.clone()).put_until(key.clone(), bytes, unix_ms(expires))).await
    }

    /// Writes a new document beside one of the same aggregate that must not have changed; it vanishes at `expires`.
    ///
    /// Says `false` when the other one changed, or there is one at `key` already.
    pub(crate) async fn create_beside<T, U: Serialize>(
        &self,
        unchanged: &Stored<T>,
        key: &Key,
        value: &U,
        expires: Timestamp,
    ) -> Result<bool> {
        let bytes = json(key, value)?;
        let batch = unchanged.unchanged().expect_absent(key.clone());
        self.commit(batch.put_until(key.clone(), bytes, unix_ms(expires))).await
    }

    /// Takes what was read away and writes another document of the same aggregate that vanishes at `expires`.
    ///
    /// Says `false` when somebody else changed the first in between, or there is one at `key` already.
    pub(crate) async fn exchange_until<T, U: Serialize>(
        &self,
        taken: &Stored<T>,
        key: &Key,
        value: &U,
        expires: Timestamp,
    ) -> Result<bool> {
        let bytes = json(key, value)?;
        let batch = taken.unchanged().expect_absent(key.clone()).delete(taken.key.clone());
        self.commit(batch.put_until(key.clone(), bytes, unix_ms(expires))).await
    }

    /// Writes back what was read and changed; says `false` when somebody else changed it in between.
    pub(crate) async fn replace<T: Serialize>(&self, stored: &Stored<T>) -> Result<bool> {
        let bytes = json(&stored.key, &stored.value)?;
        self.commit(stored.unchanged().put(stored.key.clone(), bytes)).await
    }

    /// Like [`Documents::replace`], for a document that vanishes at `expires`.
    pub(crate) async fn replace_until<T: Serialize>(&self, stored: &Stored<T>, expires: Timestamp) -> Result<bool> {
        let bytes = json(&stored.key, &stored.value)?;
        self.commit(stored.unchanged().put_until(stored.key.clone(), bytes, unix_ms(expires))).await
    }

    /// Deletes what was read; says `false` when somebody else changed it in between.
    pub(crate) async fn delete<T>(&self, stored: &Stored<T>) -> Result<bool> {
        self.commit(stored.unchanged().delete(stored.key.clone())).await
    }

    /// Deletes what is there, if anything is; what somebody else writes in between stays.
    pub(crate) async fn remove(&self, key: &Key) -> Result<()> {
        match self.read::<IgnoredAny>(key).await? {
            Some(stored) => self.delete(&stored).await.map(drop),
            None => Ok(()),
        }
    }

    /// Takes a token from a bucket.
    pub(crate) async fn take_token(&self, bucket: &Key, rate: Rate) -> Result<Token> {
        Ok(self.store.take_token(bucket, rate).await?)
    }

    async fn commit(&self, batch: Batch) -> Result<bool> {
        Ok(matches!(self.store.commit(batch).await?, Commit::Done))
    }
}

/// Tries a change until it is made; an attempt gives nothing when somebody else was faster.
///
/// Whoever is overtaken all the time is told so; `what` names the thing.
pub(crate) async fn retried<T, Attempt>(what: &'static str, attempt: impl Fn() -> Attempt) -> Result<T>
where
    Attempt: Future<Output = Result<Option<T>>>,
{
    for _ in 0..TRIES_MAX {
        if let Some(done) = attempt().await? {
            return Ok(done);
        }
    }
    Err(Error::Contended { what })
}

impl<T> Stored<T> {
    /// The beginning of a change that must find the document as it was read.
    fn unchanged(&self) -> Batch {
        Batch::new().expect(self.key.clone(), self.version)
    }
}

impl<T: DeserializeOwned> Stored<T> {
    fn parse(entry: Entry) -> Result<Self> {
        let Entry { key, value, version } = entry;
        match serde_json::from_slice(&value) {
            Ok(value) => Ok(Self { value, key, version }),
            Err(source) => Err(Error::Record { key: key.to_string(), source }),
        }
    }
}

fn json<T: Serialize>(key: &Key, value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|source| Error::Record { key: key.to_string(), source })
}

fn unix_ms(time: Timestamp) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(0)
}
