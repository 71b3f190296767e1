#![doc = include_str!("../README.md")]

mod batch;
mod clock;
pub mod embedded;
mod entry;
mod error;
mod key;
mod rate;
mod redis;
mod snapshot;
pub mod socket;
mod usage;

use async_trait::async_trait;

pub use self::{
    batch::{BATCH_STEPS_MAX, Batch, Commit, VALUE_BYTES_MAX},
    clock::{StoreClock, UnixMillis},
    embedded::{DiskSpace, Embedded, Restoring, StoreDisk},
    entry::{Entry, Page, Version},
    error::{Error, ErrorKind},
    key::{Key, Tag},
    rate::{Buckets, Rate, TakenToken, TakenTokens},
    redis::{Redis, RedisSettings},
    snapshot::{Snapshot, StoredEntry},
    socket::SocketStore,
    usage::{Usage, UsageCursor, UsagePage},
};

/// Maximum number of keys of one `get`.
pub const GET_KEYS_MAX: usize = 1000;
/// Maximum number of entries that one `list` or `page` returns, even if its `limit` is higher.
pub const LIST_MAX: usize = 1000;

/// Ordered keys with versions, atomic conditional commits, and rate limits.
///
/// Expired entries do not exist for any call.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Looks up at most [`GET_KEYS_MAX`] keys, and returns their entries in the same order.
    ///
    /// The keys of one tag are read atomically, those of different tags one tag after the other.
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, Error>;

    /// Lists the entries under a prefix, ordered by key: at most `limit`, and never more than [`LIST_MAX`].
    ///
    /// Starts after the key `after`, if there is one. [`Error::Tags`] when it has another tag than `prefix`.
    async fn list(&self, prefix: &Key, after: Option<&Key>, limit: usize) -> Result<Vec<Entry>, Error>;

    /// Lists the entries under a prefix after the first `offset`, and counts all of them, atomically.
    ///
    /// At most `limit` entries, and never more than [`LIST_MAX`]. To read a whole list, `list` is cheaper.
    async fn page(&self, prefix: &Key, offset: usize, limit: usize) -> Result<Page, Error>;

    /// Applies a batch if all its conditions hold, otherwise nothing of it.
    ///
    /// The batch is durable when this returns. [`Error::Tags`] when its keys have different tags. After
    /// [`Error::Unavailable`] it may or may not have been applied: read again to find out.
    async fn commit(&self, batch: Batch) -> Result<Commit, Error>;

    /// Takes tokens from the bucket at `key`: as many of those that are wanted as there are.
    ///
    /// Buckets are not entries: they need no commit, and restarting the store may fill them.
    async fn take_tokens(&self, key: &Key, rate: Rate, wanted: u32) -> Result<TakenTokens, Error>;

    /// Reads everything as it is at one moment, while others write.
    ///
    /// [`Error::NoSnapshots`] from servers that have backups of their own.
    async fn snapshot(&self) -> Result<Snapshot, Error> {
        Err(Error::NoSnapshots)
    }

    /// Returns the size of every tag, in pages: from the first one, or from the cursor of another page.
    async fn usage(&self, from: Option<&UsageCursor>) -> Result<UsagePage, Error>;

    /// Returns the sizes of these tags in bytes, in the same order. At most [`GET_KEYS_MAX`].
    async fn usage_of(&self, tags: &[Tag]) -> Result<Vec<u64>, Error>;

    /// Checks that the store answers and accepts writes, for readiness.
    async fn check(&self) -> Result<(), Error>;
}

impl dyn Store + '_ {
    /// Looks up one key.
    pub async fn get_one(&self, key: &Key) -> Result<Option<Entry>, Error> {
        self.get_array(std::array::from_ref(key)).await.map(|[entry]| entry)
    }

    /// Looks up a few keys, like [`Store::get`].
    pub async fn get_array<const COUNT: usize>(&self, keys: &[Key; COUNT]) -> Result<[Option<Entry>; COUNT], Error> {
        let mut found = self.get(keys).await?.into_iter();
        Ok(std::array::from_fn(|_| found.next().flatten()))
    }

    /// Changes the entry of a claim if its value is still `owner`. Returns false if it is not, or changed meanwhile.
    pub async fn change_claim(
        &self,
        claim: &Key,
        owner: &[u8],
        change: impl FnOnce(Batch, Key) -> Batch,
    ) -> Result<bool, Error> {
        let claimed = self.get_one(claim).await?;
        let Some(claimed) = claimed.filter(|claimed| *claimed.value == *owner) else { return Ok(false) };
        let batch = change(Batch::new().expect(claim.clone(), claimed.version), claim.clone());
        Ok(self.commit(batch).await? == Commit::Done)
    }

    /// Takes one token from the bucket at `key`, or returns the time until there is one.
    pub async fn take_token(&self, key: &Key, rate: Rate) -> Result<TakenToken, Error> {
        self.take_tokens(key, rate, 1).await.map(Into::into)
    }

    /// Returns the number of bytes by which a batch lets the store grow, counted as in [`Usage::bytes`]. Entries that
    /// it replaces or deletes are subtracted. 0 if the store shrinks.
    pub async fn growth_of(&self, batch: &Batch) -> Result<u64, Error> {
        let mut before = 0;
        for keys in batch.changed_keys().chunks(GET_KEYS_MAX) {
            for entry in self.get(keys).await?.into_iter().flatten() {
                before += usage::entry_bytes(entry.key.as_str().len(), entry.value.len());
            }
        }
        Ok(batch.put_bytes().saturating_sub(before))
    }
}

/// Calls `attempt` until it returns something, at most `attempts_max` times.
///
/// An attempt reads, commits, and returns `None` if the commit conflicted with another writer.
pub async fn retry<T, E, Attempt>(attempts_max: usize, attempt: impl Fn() -> Attempt) -> Result<Option<T>, E>
where
    Attempt: Future<Output = Result<Option<T>, E>>,
{
    for _ in 0..attempts_max {
        if let Some(done) = attempt().await? {
            return Ok(Some(done));
        }
    }
    Ok(None)
}

/// Refuses more than [`GET_KEYS_MAX`] keys or tags.
fn check_count<T>(keys: &[T]) -> Result<(), Error> {
    match keys.len() {
        0..=GET_KEYS_MAX => Ok(()),
        count => Err(Error::TooLarge { what: "list of keys", size: count, limit: GET_KEYS_MAX }),
    }
}

/// Refuses to continue after a key of another tag.
fn check_after(prefix: &Key, after: Option<&Key>) -> Result<(), Error> {
    match after {
        Some(after) if after.tag() != prefix.tag() => Err(Error::Tags),
        _ => Ok(()),
    }
}
