//! Batches: what is expected and what is then done, all of it or nothing.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Error, Key, UnixMillis, Version, shared::base64};

/// The most checks and operations of one batch.
pub const BATCH_STEPS_MAX: usize = 1024;
/// The most bytes of a value or of a message in a queue.
pub const VALUE_BYTES_MAX: usize = 4 << 20;
/// The most bytes of all values of one batch.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// Expectations and changes that are committed together.
///
/// All keys must have one tag. Expectations are checked before the first change; the changes are then made in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Batch {
    pub(crate) checks: Vec<Check>,
    pub(crate) changes: Vec<Change>,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[must_use = "a batch that conflicted changed nothing"]
pub enum Commit {
    /// All of it was done.
    Done,
    /// Something was not as expected: nothing was done.
    Conflict,
}

/// What must be so for a batch to be applied.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Check {
    pub(crate) key: Key,
    /// None when there must be nothing.
    pub(crate) version: Option<Version>,
}

/// One thing that a batch does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Change {
    Put {
        key: Key,
        #[serde(with = "base64")]
        value: Bytes,
        expires: Option<UnixMillis>,
    },
    Delete {
        key: Key,
    },
    Push {
        queue: Key,
        #[serde(with = "base64")]
        value: Bytes,
    },
}

impl Batch {
    /// A batch that expects nothing and does nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Expects that the key was not written since it had this version.
    pub fn expect(mut self, key: Key, version: Version) -> Self {
        self.checks.push(Check { key, version: Some(version) });
        self
    }

    /// Expects that nothing lies at the key.
    pub fn expect_absent(mut self, key: Key) -> Self {
        self.checks.push(Check { key, version: None });
        self
    }

    /// Puts a value there for good.
    pub fn put(mut self, key: Key, value: impl Into<Bytes>) -> Self {
        self.changes.push(Change::Put { key, value: value.into(), expires: None });
        self
    }

    /// Puts a value there that is gone from the moment `expires`.
    pub fn put_until(mut self, key: Key, value: impl Into<Bytes>, expires: UnixMillis) -> Self {
        self.changes.push(Change::Put { key, value: value.into(), expires: Some(expires) });
        self
    }

    /// Removes what lies there, if there is anything.
    pub fn delete(mut self, key: Key) -> Self {
        self.changes.push(Change::Delete { key });
        self
    }

    /// Adds a message to the end of a queue.
    pub fn push(mut self, queue: Key, value: impl Into<Bytes>) -> Self {
        self.changes.push(Change::Push { queue, value: value.into() });
        self
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.checks.is_empty() && self.changes.is_empty()
    }

    /// The queues that messages are pushed to, once for each message.
    pub(crate) fn pushes(&self) -> impl Iterator<Item = &Key> + Clone {
        self.changes.iter().filter_map(|change| match change {
            Change::Push { queue, .. } => Some(queue),
            _ => None,
        })
    }

    /// Refuses what a cluster could not do at once, and what is too large.
    ///
    /// The key is one of the batch, and names its tag; there is none when the batch is empty.
    pub(crate) fn check(&self) -> Result<Option<&Key>, Error> {
        let keys = || self.checks.iter().map(|check| &check.key).chain(self.changes.iter().map(Change::key));
        let first = keys().next();
        if first.is_some_and(|first| keys().any(|key| key.tag() != first.tag())) {
            return Err(Error::Tags);
        }
        let steps = self.checks.len() + self.changes.len();
        within("batch of steps", steps, BATCH_STEPS_MAX)?;
        let mut bytes = 0;
        for change in &self.changes {
            within("value", change.bytes(), VALUE_BYTES_MAX)?;
            bytes += change.bytes();
        }
        within("batch of values", bytes, BATCH_BYTES_MAX)?;
        Ok(first)
    }
}

impl Change {
    fn key(&self) -> &Key {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
            Self::Push { queue, .. } => queue,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Put { value, .. } | Self::Push { value, .. } => value.len(),
            Self::Delete { .. } => 0,
        }
    }
}

fn within(what: &'static str, size: usize, limit: usize) -> Result<(), Error> {
    if size > limit { Err(Error::TooLarge { what, size, limit }) } else { Ok(()) }
}
