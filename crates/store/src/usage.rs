//! How many bytes are stored under each tag.

use serde::{Deserialize, Serialize};

use crate::Tag;

/// What an entry takes beside its key and its value: version, expiry, and its part of the pages.
const ENTRY_BYTES: u64 = 64;

/// How much is stored under a tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The tag.
    pub tag: Tag,
    /// The size of its entries in bytes, about as much as they take on disk: for each its value, twice its key, and 64.
    /// Expired entries count until they are removed.
    pub bytes: u64,
}

/// Some tags, and what is stored under each of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsagePage {
    /// Some tags. What changes meanwhile may be missing; a tag that is on two pages has what the later one says.
    pub tags: Vec<Usage>,
    /// Where the next page begins; none after the last one.
    pub next: Option<UsageCursor>,
}

/// Where a page of tags begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageCursor(pub(crate) String);

/// What an entry with a key and a value of these lengths takes.
pub(crate) fn entry_bytes(key: usize, value: usize) -> u64 {
    2 * key as u64 + value as u64 + ENTRY_BYTES
}
