//! A short hash of a device, to leave out blocks without it.

/// A short hash of a device, to leave out blocks without it.
pub(crate) fn device_hash(app_id: &[u8], dev_id: &[u8]) -> u32 {
    crc32fast::hash(app_id).rotate_left(7) ^ crc32fast::hash(dev_id)
}
