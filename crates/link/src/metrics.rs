//! The metrics of connections. No label names a device or an application.

use metrics::{counter, describe_counter};

const DROPPED: &str = "airlock_bridge_dropped_total";
const PASSED_OVER: &str = "airlock_bridge_passed_over_total";

/// Describes them.
pub fn describe() {
    describe_counter!(DROPPED, "Messages that were not published, by reason");
    describe_counter!(
        PASSED_OVER,
        "Messages that took so long that later ones were acknowledged to the broker before them"
    );
}

/// Counts a message that was not published, for this reason.
pub fn dropped(reason: &'static str) {
    counter!(DROPPED, "reason" => reason).increment(1);
}

/// Counts a message before which later ones are acknowledged.
pub(crate) fn passed_over() {
    counter!(PASSED_OVER).increment(1);
}

/// Counts events that left a stream before they were read.
pub fn lost(events: u64) {
    counter!(DROPPED, "reason" => "history too short").increment(events);
}
