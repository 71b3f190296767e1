//! How an entry is laid out in bytes: version, expiry, value. Both back ends keep the same bytes.

use bytes::{Buf, Bytes};

use crate::{Entry, Error, Key, UnixMillis, Version};

/// Bytes before the value: the version and the expiry, eight each, the most significant first.
pub(crate) const HEADER_BYTES: usize = 16;
/// The expiry of what stays for good.
pub(crate) const NEVER: UnixMillis = 0;

/// What is kept at a key.
pub(crate) struct Record {
    pub(crate) version: Version,
    /// The moment from which it is gone, or [`NEVER`].
    pub(crate) expires: UnixMillis,
    pub(crate) value: Bytes,
}

impl Record {
    /// Reads a record; `key` is only for the error.
    pub(crate) fn decode(mut bytes: Bytes, key: &str) -> Result<Self, Error> {
        let (version, expires) = header(&bytes, key)?;
        Ok(Self { version, expires, value: bytes.split_off(HEADER_BYTES) })
    }

    /// The bytes to keep.
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

    /// Whether it has not expired.
    pub(crate) fn is_live(&self, now: UnixMillis) -> bool {
        is_live(self.expires, now)
    }
}

/// Whether the record of these bytes has not expired, without a copy of it.
pub(crate) fn is_live_in(bytes: &[u8], key: &str, now: UnixMillis) -> Result<bool, Error> {
    header(bytes, key).map(|(_, expires)| is_live(expires, now))
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

/// The expiry as it is kept: what was to be gone since 1970 is gone, rather than there for good.
pub(crate) fn kept_expiry(expires: Option<UnixMillis>) -> UnixMillis {
    expires.map_or(NEVER, |expires| expires.clamp(1, 1 << 53))
}
