//! What discovery counts; no label ever names a component or what it serves.

use metrics::{counter, describe_counter};
use types::ServiceName;

const ANNOUNCEMENTS: &str = "airlock_discovery_announcements_total";
const METADATA: &str = "airlock_discovery_metadata_changes_total";
const CUT: &str = "airlock_discovery_cut_answers_total";

/// Says what each figure means.
pub(crate) fn describe() {
    describe_counter!(ANNOUNCEMENTS, "Accepted announcements by service");
    describe_counter!(METADATA, "Accepted changes of what components serve, by service and whether added or deleted");
    describe_counter!(CUT, "Answers that left out metadata because there was too much");
}

/// A component announced itself.
pub(crate) fn announced(service: ServiceName) {
    counter!(ANNOUNCEMENTS, "service" => service.as_str()).increment(1);
}

/// A component serves something new, or no longer.
pub(crate) fn metadata_changed(service: ServiceName, change: &'static str) {
    counter!(METADATA, "service" => service.as_str(), "change" => change).increment(1);
}

/// An answer was cut.
pub(crate) fn answer_cut() {
    counter!(CUT).increment(1);
}
