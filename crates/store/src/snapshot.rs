//! All entries of a store as they were at one moment, for backups.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::{
    Entry, Error, Key, UnixMillis, Version,
    entry::{
        base64_bytes,
        record::{NEVER, Record},
    },
};

/// Maximum size of the values of a part, in bytes, unless it has one entry only.
pub(crate) const PART_BYTES_MAX: usize = 1 << 20;
/// Maximum number of entries of a part.
pub(crate) const PART_ENTRIES_MAX: usize = 1000;
/// Number of parts read ahead.
const PARTS_AHEAD: usize = 2;

/// An entry, and when it expires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredEntry {
    /// Tag and path.
    pub key: Key,
    /// The version of its last write.
    pub version: Version,
    /// Time of expiry; `None` if it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<UnixMillis>,
    /// Bytes that the store does not interpret.
    #[serde(with = "base64_bytes")]
    pub value: Bytes,
}

/// A part of a snapshot, as it is sent to its reader. The end is sent, too, so that a writer that was lost is noticed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Part {
    Entries(Vec<StoredEntry>),
    End,
}

/// All entries of a store as they were at one moment, in parts.
#[derive(Debug)]
pub struct Snapshot {
    last_version: Version,
    parts: mpsc::Receiver<Result<Part, Error>>,
}

pub(crate) type PartSender = mpsc::Sender<Result<Part, Error>>;

impl Snapshot {
    /// A snapshot whose parts are sent through the channel that is returned.
    pub(crate) fn new(last_version: Version) -> (PartSender, Self) {
        let (sender, parts) = mpsc::channel(PARTS_AHEAD);
        (sender, Self { last_version, parts })
    }

    /// The last version that was assigned. Deleted entries may have had it.
    pub fn last_version(&self) -> Version {
        self.last_version
    }

    /// Some more entries, ordered by key; `None` after the last ones. An error is the end.
    pub async fn next(&mut self) -> Result<Option<Vec<StoredEntry>>, Error> {
        match self.parts.recv().await {
            Some(Ok(Part::Entries(entries))) => Ok(Some(entries)),
            Some(Ok(Part::End)) => Ok(None),
            Some(Err(error)) => Err(error),
            None => Err(Error::Unavailable { what: "read the store", source: None }),
        }
    }
}

impl StoredEntry {
    /// The entry of a record, unless it has expired.
    pub(crate) fn of(record: Record, key: Key, now: UnixMillis) -> Option<Self> {
        let expires = Some(record.expires).filter(|expires| *expires != NEVER);
        let Entry { key, value, version } = record.entry(key, now)?;
        Some(Self { key, version, expires, value })
    }
}
