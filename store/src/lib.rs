#![doc = include_str!("../README.md")]

mod batch;
mod clock;
pub mod embedded;
mod error;
mod hint;
mod key;
mod queue;
mod rate;
mod record;
pub mod redis;
pub mod shared;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use self::{
    batch::{BATCH_STEPS_MAX, Batch, Commit, VALUE_BYTES_MAX},
    clock::{Clock, UnixMillis},
    embedded::Embedded,
    error::{Error, Kind},
    hint::{CHANNEL_BYTES_MAX, Hint, Watch},
    key::{ID_BYTES_MAX, Key, PATH_BYTES_MAX, Tag},
    queue::{LEASES_MAX, Lease, QUEUE_LENGTH_MAX},
    rate::{Rate, Token},
    redis::{Redis, RedisSettings},
    shared::Shared,
};

/// The most keys that one `get` looks up.
pub const GET_KEYS_MAX: usize = 1000;
/// The most entries that one `list` or `page` returns, whatever its limit says.
pub const LIST_MAX: usize = 1000;

/// Something that is kept, as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Where it lies.
    pub key: Key,
    /// What lies there.
    #[serde(with = "shared::base64")]
    pub value: Bytes,
    /// Which write put it there.
    pub version: Version,
}

/// A part of a list by number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// What is in it, ordered by key.
    pub entries: Vec<Entry>,
    /// How many entries the whole list has.
    pub total: usize,
}

/// Names one write of one key.
///
/// A version never comes back, not even when the key is deleted and created again: that it is still the same proves
/// that nothing was written in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version(u64);

/// Ordered keys with versions, atomic conditional commits, queues, rate limits and hints.
///
/// What has expired is not there: no call returns it, and no check finds it.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Looks up keys, in the order asked.
    ///
    /// Keys of one tag are read at one moment, keys of several tags at several. At most [`GET_KEYS_MAX`] keys.
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, Error>;

    /// Lists what lies under a prefix, ordered by key.
    ///
    /// Starts after the key `after` when it is given; at most `limit` entries, and never more than [`LIST_MAX`].
    /// [`Error::Tags`] when `after` has another tag than `prefix`.
    async fn list(&self, prefix: &Key, after: Option<&Key>, limit: usize) -> Result<Vec<Entry>, Error>;

    /// Lists what lies under a prefix without the first `offset` entries, and counts all of it, at one moment.
    ///
    /// At most `limit` entries, and never more than [`LIST_MAX`]; only these are read. To go on after them, `list` is
    /// cheaper.
    async fn page(&self, prefix: &Key, offset: usize, limit: usize) -> Result<Page, Error>;

    /// Applies a batch if everything that it expects is so, otherwise nothing of it.
    ///
    /// It is durable when this returns. [`Error::Tags`] when its keys have several tags. After
    /// [`Error::Unavailable`] it may have happened or not: read again to find out.
    async fn commit(&self, batch: Batch) -> Result<Commit, Error>;

    /// Takes one token from the bucket at `key`, or says how long to wait for one.
    ///
    /// Buckets are not entries: they need no commit, and a restart of the store may fill them.
    async fn take_token(&self, key: &Key, rate: Rate) -> Result<Token, Error>;

    /// Leases up to `count` messages of a queue for a while, at most [`LEASES_MAX`].
    ///
    /// Messages whose lease ran out come first, then the oldest. Nobody else gets them for `visible_after`; what is
    /// not acknowledged by then is delivered again, with a higher count. `consumer` says who holds them.
    async fn reserve(
        &self,
        queue: &Key,
        consumer: &str,
        count: usize,
        visible_after: Duration,
    ) -> Result<Vec<Lease>, Error>;

    /// Removes a leased message from its queue for good.
    ///
    /// False when it is not ours any more: the lease ran out, and the message was leased again or acknowledged.
    async fn ack(&self, queue: &Key, lease: &Lease) -> Result<bool, Error>;

    /// Tells whoever watches the channel; nobody may be listening, and a hint may be lost.
    async fn notify(&self, channel: &str, message: Bytes) -> Result<(), Error>;

    /// Watches a channel for hints; they never hold up the one who notifies.
    fn watch(&self, channel: &str) -> Result<Watch, Error>;

    /// Checks that the store answers and accepts writes, for readiness.
    async fn check(&self) -> Result<(), Error>;
}

/// Refuses to look up too many keys at once.
fn check_count(keys: &[Key]) -> Result<(), Error> {
    match keys.len() {
        0..=GET_KEYS_MAX => Ok(()),
        count => Err(Error::TooLarge { what: "list of keys", size: count, limit: GET_KEYS_MAX }),
    }
}

/// Refuses to go on from a key of another tag.
fn check_after(prefix: &Key, after: Option<&Key>) -> Result<(), Error> {
    match after {
        Some(after) if after.tag() != prefix.tag() => Err(Error::Tags),
        _ => Ok(()),
    }
}
