//! Size of each tag in the store.

use serde::{Deserialize, Serialize};

use crate::Tag;

/// Size of an entry beside its key and its value, in bytes: version, expiry, and its part of the pages.
const ENTRY_BYTES: u64 = 64;

/// The size of a tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The tag.
    pub tag: Tag,
    /// The size of its entries in bytes, about as much as they take on disk: for each its value, twice its key, and 64.
    /// Expired entries count until they are removed.
    pub bytes: u64,
}

/// Some tags, with their sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsagePage {
    /// Some tags. Changes made meanwhile may be missing; of a tag that is on two pages, the later one counts.
    pub tags: Vec<Usage>,
    /// Start of the next page; `None` after the last one.
    pub next: Option<UsageCursor>,
}

/// Start of a page of tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageCursor(pub(crate) String);

/// Returns the size of an entry with a key and a value of these lengths, in bytes.
pub(crate) fn entry_bytes(key: usize, value: usize) -> u64 {
    2 * key as u64 + value as u64 + ENTRY_BYTES
}
