//! Metrics of the discovery service. No label names a component or what it serves.

use metrics::{counter, describe_counter};
use types::ServiceName;

const ANNOUNCEMENTS: &str = "airlock_discovery_announcements_total";
const METADATA: &str = "airlock_discovery_metadata_changes_total";
const CUT: &str = "airlock_discovery_cut_answers_total";

pub(crate) fn describe() {
    describe_counter!(ANNOUNCEMENTS, "Accepted announcements, by service");
    describe_counter!(METADATA, "Accepted changes of what components serve, by service and change");
    describe_counter!(CUT, "Responses truncated because they had too much metadata");
}

pub(crate) fn announced(service: ServiceName) {
    counter!(ANNOUNCEMENTS, "service" => service.as_str()).increment(1);
}

/// Counts a change of what a component serves.
pub(crate) fn metadata_changed(service: ServiceName, change: &'static str) {
    counter!(METADATA, "service" => service.as_str(), "change" => change).increment(1);
}

/// Counts a truncated response.
pub(crate) fn response_cut() {
    counter!(CUT).increment(1);
}
