//! Stored values with their keys and versions, and the form in which every back end stores them.

pub(crate) mod base64_bytes;
pub(crate) mod record;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::Key;

/// A stored value and its version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Tag and path.
    pub key: Key,
    /// Bytes that the store does not interpret.
    #[serde(with = "base64_bytes")]
    pub value: Bytes,
    /// The version of its last write.
    pub version: Version,
}

/// A page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The entries of the page, ordered by key.
    pub entries: Vec<Entry>,
    /// The number of entries in the whole list.
    pub total: usize,
}

/// Identifies one write of one key.
///
/// A version is never reused, not even when the key is deleted and created again: an unchanged version proves that
/// nothing was written in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version(pub(crate) u64);
