//! The counters of a device whose frames the handler opens, and when it was last heard.
//!
//! They are apart from the device's record, whose keys would have to be sealed again with every uplink.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::Entry;
use types::Timestamp;

use super::model::Device;
use crate::Error;

/// Time after a response in which the network server may not know of it yet, so that those that it prepares have the
/// counter of that response. Later, the same counter means that the response was lost on its way.
const RESPONSE_UNKNOWN_MAX: Duration = Duration::from_secs(2);

/// Counters of a device in its session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FrameCounters {
    /// The frame counter of the last uplink.
    pub(crate) f_cnt_up: u32,
    /// The next frame counter of downlinks.
    #[serde(default)]
    pub(crate) f_cnt_down: u32,
    /// Time of the last uplink, in nanoseconds since 1970.
    pub(crate) last_seen: i64,
    /// The last downlink that the handler made; none before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answered: Option<SentResponse>,
}

/// A downlink in response to an uplink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SentResponse {
    f_cnt: u32,
    /// In nanoseconds since 1970.
    at: i64,
}

impl FrameCounters {
    /// Notes a downlink with this counter.
    pub(crate) fn note_response(&mut self, f_cnt: u32, at: Timestamp) {
        self.answered = Some(SentResponse { f_cnt, at: at.as_nanos() });
    }

    /// Returns true if a response was prepared without knowledge of the last downlink, to an uplink that arrived at
    /// this time. The counter of the response then belongs to that downlink: the network server counts on, and the
    /// device could not decrypt a payload.
    pub(crate) fn is_outdated(&self, f_cnt: u32, arrived: Timestamp) -> bool {
        let Some(answered) = &self.answered else { return false };
        let is_unknown = arrived <= Timestamp::from_nanos(answered.at).plus(RESPONSE_UNKNOWN_MAX);
        f_cnt <= answered.f_cnt && is_unknown
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    // Conformance: Of templates with one counter, which come when uplinks do at once
    #[test]
    fn a_response_is_outdated_while_the_network_server_may_not_know_of_the_last_downlink() {
        let at = |millis: i64| Timestamp::from_nanos(millis * 1_000_000);
        let mut counters = FrameCounters::default();
        assert!(!counters.is_outdated(0, at(0)), "nothing was sent");
        counters.note_response(20, at(10_000));
        for (f_cnt, arrived_ms, expected) in
            [(20, 9_500, true), (19, 9_500, true), (20, 12_000, true), (20, 12_001, false), (21, 9_500, false)]
        {
            assert_eq!(counters.is_outdated(f_cnt, at(arrived_ms)), expected, "{f_cnt} {arrived_ms}");
        }
    }
}
