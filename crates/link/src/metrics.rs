//! The metrics of connections. No label names a device or an application.

use metrics::{counter, describe_counter};

const DROPPED: &str = "airlock_bridge_dropped_total";

/// Describes them.
pub fn describe() {
    describe_counter!(DROPPED, "Messages that were not published, by reason");
}

/// Counts a message that was not published, for this reason.
pub fn dropped(reason: &'static str) {
    counter!(DROPPED, "reason" => reason).increment(1);
}

/// Counts events that left a stream before they were read.
pub fn lost(events: u64) {
    counter!(DROPPED, "reason" => "history too short").increment(events);
}
