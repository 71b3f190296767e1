//! Batches: conditions and changes that are applied together or not at all.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Entry, Error, Key, UnixMillis, Version, base64_bytes};

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
    /// None when the key must be absent.
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

    /// Whether it has neither conditions nor changes.
    pub fn is_empty(&self) -> bool {
        self.checks.is_empty() && self.changes.is_empty()
    }

    /// Refuses keys of different tags, which a cluster could not commit together, and batches that are too large.
    ///
    /// Returns one of its keys, for the tag; none when the batch is empty.
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
