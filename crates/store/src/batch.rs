//! Batches: conditions and changes that are applied together or not at all.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

#[cfg(doc)]
use crate::Usage;
use crate::{Entry, Error, Key, UnixMillis, Version, entry::base64_bytes, usage::entry_bytes};

/// Maximum number of conditions and changes of one batch.
pub const BATCH_STEPS_MAX: usize = 1024;
/// Maximum size of a value, in bytes.
pub const VALUE_BYTES_MAX: usize = 4 << 20;
const BATCH_BYTES_MAX: usize = 16 << 20;

/// Conditions and changes that are committed together.
///
/// All keys must have the same tag. All conditions are checked before the first change, and changes are applied in
/// order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Batch {
    pub(crate) checks: Vec<Check>,
    pub(crate) changes: Vec<Change>,
    #[serde(default)]
    is_growing: bool,
}

/// The outcome of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[must_use = "a batch that conflicted changed nothing"]
pub enum Commit {
    /// All changes were applied.
    Done,
    /// A condition did not hold, and nothing was changed.
    Conflict,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Check {
    pub(crate) key: Key,
    /// `None` when the key must be absent.
    pub(crate) version: Option<Version>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Change {
    Put {
        key: Key,
        #[serde(with = "base64_bytes")]
        value: Bytes,
        expires: Option<UnixMillis>,
    },
    Delete {
        key: Key,
    },
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requires that the key still has this version.
    pub fn expect(mut self, key: Key, version: Version) -> Self {
        self.checks.push(Check { key, version: Some(version) });
        self
    }

    /// Requires that the key is absent.
    pub fn expect_absent(mut self, key: Key) -> Self {
        self.checks.push(Check { key, version: None });
        self
    }

    /// Requires that the key still has the version of this entry, or is absent if there was none.
    pub fn expect_entry(self, key: &Key, entry: Option<&Entry>) -> Self {
        match entry {
            Some(entry) => self.expect(key.clone(), entry.version),
            None => self.expect_absent(key.clone()),
        }
    }

    /// Sets a value that does not expire.
    pub fn put(mut self, key: Key, value: impl Into<Bytes>) -> Self {
        self.changes.push(Change::Put { key, value: value.into(), expires: None });
        self
    }

    /// Sets a value that expires at `expires`.
    pub fn put_until(mut self, key: Key, value: impl Into<Bytes>, expires: UnixMillis) -> Self {
        self.changes.push(Change::Put { key, value: value.into(), expires: Some(expires) });
        self
    }

    /// Deletes a key, if it exists.
    pub fn delete(mut self, key: Key) -> Self {
        self.changes.push(Change::Delete { key });
        self
    }

    /// Marks a batch that stores more for its owner, which is only refused for the sake of the others: it may be
    /// refused when its owner has used up its stored bytes, or the disk its reserve.
    ///
    /// Not for changes that end something, or must not fail half-way: deletions, acknowledgements, leases, revocations,
    /// logins.
    pub fn growing(mut self) -> Self {
        self.is_growing = true;
        self
    }

    /// Returns true if the batch may be refused to save room.
    pub fn is_growing(&self) -> bool {
        self.is_growing
    }

    /// The tag of its keys with its braces; `None` when it is empty.
    pub fn tag(&self) -> Option<&str> {
        let check = self.checks.first().map(|check| &check.key);
        check.or_else(|| self.changes.first().map(Change::key)).map(Key::tag)
    }

    /// The keys that it puts or deletes, each once.
    pub(crate) fn changed_keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = self.changes.iter().map(|change| change.key().clone()).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// Returns the size of the entries to put, counted as in [`Usage::bytes`]. Entries that they replace are not
    /// subtracted.
    pub fn put_bytes(&self) -> u64 {
        let bytes = |change: &Change| match change {
            Change::Put { key, value, .. } => entry_bytes(key.as_str().len(), value.len()),
            Change::Delete { .. } => 0,
        };
        self.changes.iter().map(bytes).sum()
    }

    /// Returns true if the batch has neither conditions nor changes.
    pub fn is_empty(&self) -> bool {
        self.checks.is_empty() && self.changes.is_empty()
    }

    /// Refuses keys of different tags, which a cluster could not commit together, and batches that are too large.
    ///
    /// Returns one of its keys, for the tag; `None` when the batch is empty.
    pub(crate) fn check(&self) -> Result<Option<&Key>, Error> {
        let keys = || self.checks.iter().map(|check| &check.key).chain(self.changes.iter().map(Change::key));
        let first = keys().next();
        if first.is_some_and(|first| keys().any(|key| key.tag() != first.tag())) {
            return Err(Error::Tags);
        }
        let steps = self.checks.len() + self.changes.len();
        check_size("batch of steps", steps, BATCH_STEPS_MAX)?;
        let mut bytes = 0;
        for change in &self.changes {
            check_size("value", change.bytes(), VALUE_BYTES_MAX)?;
            bytes += change.bytes();
        }
        check_size("batch of values", bytes, BATCH_BYTES_MAX)?;
        Ok(first)
    }
}

impl Change {
    fn key(&self) -> &Key {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Put { value, .. } => value.len(),
            Self::Delete { .. } => 0,
        }
    }
}

fn check_size(what: &'static str, size: usize, limit: usize) -> Result<(), Error> {
    if size > limit { Err(Error::TooLarge { what, size, limit }) } else { Ok(()) }
}
