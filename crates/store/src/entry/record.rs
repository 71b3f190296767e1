//! The stored form of an entry, the same in every back end: version, expiry, value.

use bytes::{Buf, Bytes};

use crate::{Entry, Error, Key, UnixMillis, Version};

/// The size of the header: version and expiry, 8 bytes each, big-endian.
pub(crate) const HEADER_BYTES: usize = 16;
/// The expiry of an entry that does not expire.
pub(crate) const NEVER: UnixMillis = 0;

/// A stored entry.
pub(crate) struct Record {
    pub(crate) version: Version,
    /// Time of expiry, or [`NEVER`].
    pub(crate) expires: UnixMillis,
    pub(crate) value: Bytes,
}

impl Record {
    /// Decodes a record; `key` is for the error.
    pub(crate) fn decode(mut bytes: Bytes, key: &str) -> Result<Self, Error> {
        let (version, expires) = header(&bytes, key)?;
        Ok(Self { version, expires, value: bytes.split_off(HEADER_BYTES) })
    }

    pub(crate) fn encode(version: Version, expires: UnixMillis, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + value.len());
        bytes.extend_from_slice(&version.0.to_be_bytes());
        bytes.extend_from_slice(&expires.to_be_bytes());
        bytes.extend_from_slice(value);
        bytes
    }

    /// The entry, unless it has expired.
    pub(crate) fn entry(self, key: Key, now: UnixMillis) -> Option<Entry> {
        self.is_live(now).then_some(Entry { key, value: self.value, version: self.version })
    }

    /// Returns true if it has not expired.
    pub(crate) fn is_live(&self, now: UnixMillis) -> bool {
        is_live(self.expires, now)
    }
}

/// Like [`Record::is_live`], without copying the value.
pub(crate) fn is_live_in(bytes: &[u8], key: &str, now: UnixMillis) -> Result<bool, Error> {
    header(bytes, key).map(|(_, expires)| is_live(expires, now))
}

/// Returns the expiry of a record. A damaged one counts as one that does not: it may be replaced.
pub(crate) fn expiry_in(bytes: &[u8]) -> UnixMillis {
    header(bytes, "").map_or(NEVER, |(_, expires)| expires)
}

fn header(mut bytes: &[u8], key: &str) -> Result<(Version, UnixMillis), Error> {
    if bytes.len() < HEADER_BYTES {
        return Err(Error::corrupt(key));
    }
    Ok((Version(bytes.get_u64()), bytes.get_u64()))
}

fn is_live(expires: UnixMillis, now: UnixMillis) -> bool {
    expires == NEVER || expires > now
}

/// The expiry as it is stored. An expiry of 0 becomes 1: 0 stands for [`NEVER`].
pub(crate) fn stored_expiry(expires: Option<UnixMillis>) -> UnixMillis {
    expires.map_or(NEVER, |expires| expires.clamp(1, 1 << 53))
}
