//! The metrics of bridges. No label names a device, an application or a device profile.

use std::time::Duration;

pub use link::metrics::dropped;
use metrics::{counter, describe_counter, describe_histogram, histogram};

const UPLINKS: &str = "airlock_bridge_uplinks_total";
const EVENTS: &str = "airlock_bridge_events_total";
const DOWNLINKS: &str = "airlock_bridge_downlinks_total";
const RETRIED: &str = "airlock_bridge_retried_total";
const API_FAILURES: &str = "airlock_bridge_api_failures_total";
const SANDBOX: &str = "airlock_bridge_sandbox_seconds";
const FUEL: &str = "airlock_bridge_sandbox_fuel";

const CATCH_UPS: &str = "airlock_bridge_catch_ups_total";
const CAUGHT_UP_UPLINKS: &str = "airlock_bridge_caught_up_uplinks_total";
const WEBHOOK_REFUSALS: &str = "airlock_bridge_webhook_refusals_total";

/// Says what each metric counts.
pub fn describe() {
    describe_counter!(
        UPLINKS,
        "Uplinks by result: decoded, failed, unchanged (no codec, or nothing to decode), duplicate or malformed"
    );
    describe_counter!(EVENTS, "Events other than uplinks by result: forwarded, duplicate or malformed");
    describe_counter!(
        DOWNLINKS,
        "Downlinks from applications by result: encoded, forwarded, refused, duplicate, or own (it came back)"
    );
    link::metrics::describe();
    describe_counter!(RETRIED, "Attempts to hand an event over to the handler that failed, and are repeated");
    describe_counter!(API_FAILURES, "Calls of the network's API that failed, by kind");
    describe_counter!(CATCH_UPS, "Queries of a storage integration by result: complete, refused or failed");
    describe_counter!(CAUGHT_UP_UPLINKS, "Uplinks that a storage integration returned");
    describe_counter!(WEBHOOK_REFUSALS, "Requests of webhooks that were refused, by status");
    describe_histogram!(SANDBOX, metrics::Unit::Seconds, "Time of a message in its sandbox");
    describe_histogram!(FUEL, metrics::Unit::Count, "Fuel that a message used");
}

/// Counts an uplink.
pub fn uplink(result: &'static str) {
    counter!(UPLINKS, "result" => result).increment(1);
}

/// Counts an event other than an uplink.
pub fn event(result: &'static str) {
    counter!(EVENTS, "result" => result).increment(1);
}

/// An uplink, or another event.
pub fn received(is_uplink: bool, result: &'static str) {
    if is_uplink { uplink(result) } else { event(result) }
}

/// Counts a downlink of an application.
pub fn downlink(result: &'static str) {
    counter!(DOWNLINKS, "result" => result).increment(1);
}

/// Counts an attempt to hand an event over that is repeated.
pub fn retried() {
    counter!(RETRIED).increment(1);
}

/// Counts a call of a network's API that failed.
pub fn api_failed(kind: types::Kind) {
    counter!(API_FAILURES, "kind" => kind.to_string()).increment(1);
}

/// Counts a query of a storage integration, and the uplinks that it returned.
pub fn caught_up(result: &'static str, uplinks: u64) {
    counter!(CATCH_UPS, "result" => result).increment(1);
    counter!(CAUGHT_UP_UPLINKS).increment(uplinks);
}

/// Counts a request of a webhook that was refused.
pub fn webhook_refused(status: u16) {
    counter!(WEBHOOK_REFUSALS, "status" => status.to_string()).increment(1);
}

/// Records a run of a codec.
pub fn ran(fuel: u64, elapsed: Duration) {
    histogram!(SANDBOX).record(elapsed.as_secs_f64());
    histogram!(FUEL).record(fuel as f64);
}
