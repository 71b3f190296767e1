//! The counters of a device whose frames the handler opens, and when it was last heard.
//!
//! They are apart from the device's record, whose keys would have to be sealed again with every uplink.

use serde::{Deserialize, Serialize};
use store::Entry;

use super::model::Device;
use crate::Error;

/// What the last frames of a device in its session were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FrameCounters {
    /// The frame counter of the last uplink.
    pub(crate) f_cnt_up: u32,
    /// The next frame counter of downlinks.
    #[serde(default)]
    pub(crate) f_cnt_down: u32,
    /// When it was received, in nanoseconds since 1970.
    pub(crate) last_seen: i64,
}

impl FrameCounters {
    /// Replaces what the device's own record says.
    pub(super) fn update(&self, device: &mut Device) {
        let lorawan = &mut device.lorawan;
        (lorawan.f_cnt_up, lorawan.f_cnt_down, lorawan.last_seen) = (self.f_cnt_up, self.f_cnt_down, self.last_seen);
    }
}

/// Reads what is stored, if anything is.
pub(super) fn read(entry: Option<&Entry>) -> Result<Option<FrameCounters>, Error> {
    Ok(entry.map(|entry| serde_json::from_slice(&entry.value)).transpose()?)
}
