//! The handler's metrics. No label names a device or an application.

use metrics::{counter, describe_counter, describe_histogram, histogram};

use types::Kind;

use crate::status::cost::Cost;

const UPLINKS: &str = "airlock_uplinks_total";
const OUTCOMES: &str = "airlock_uplink_outcomes_total";
const LATE_UPLINKS: &str = "airlock_late_uplinks_total";
const JOINS: &str = "airlock_joins_total";
const DOWNLINKS: &str = "airlock_downlinks_total";
const CANDIDATES: &str = "airlock_candidates_total";
const FAILURES: &str = "airlock_function_failures_total";
const OUTPUT_DROPPED: &str = "airlock_output_dropped_total";
const SILENT: &str = "airlock_silent_devices_total";
const NETWORK_DEVICES: &str = "airlock_network_devices_total";
const THROTTLED: &str = "airlock_handler_throttled_total";
const SANDBOX: &str = "airlock_sandbox_seconds";
const FUEL: &str = "airlock_sandbox_fuel";

pub(crate) fn describe() {
    describe_counter!(
        UPLINKS,
        "Uplinks by result: published, invalid (the validator returned false), or the kind of error"
    );
    describe_counter!(
        OUTCOMES,
        "Uplinks by what the payload functions made of them: decoded, failed, invalid, or not_converted; and by the \
         version that ran: live, candidate (for a share of the devices), or none"
    );
    describe_counter!(LATE_UPLINKS, "Uplinks that network brokers forwarded too late to be answered");
    describe_counter!(JOINS, "Join requests by result: joined, or the kind of error");
    describe_counter!(DOWNLINKS, "Downlinks from applications by result: scheduled, or the kind of error");
    describe_counter!(FAILURES, "Uplinks whose payload functions failed; they are published without fields");
    describe_counter!(
        CANDIDATES,
        "Versions for a share of the devices: started, promoted, abandoned, or failed (abandoned automatically)"
    );
    describe_counter!(
        OUTPUT_DROPPED,
        "Messages that were not published because too many waited or they were too large"
    );
    describe_counter!(
        NETWORK_DEVICES,
        "Devices looked for in network servers of v2 by result: kept, brought, foreign (of another application), refused"
    );
    describe_counter!(SILENT, "Events that a device has sent nothing for the time that its application has set");
    describe_counter!(THROTTLED, "Calls that exceeded a rate limit, by limit");
    describe_histogram!(SANDBOX, metrics::Unit::Seconds, "Time of a message in its sandbox");
    describe_histogram!(FUEL, metrics::Unit::Count, "Fuel that a message used");
}

pub(crate) fn uplink_published(cost: Cost) {
    counter!(UPLINKS, "result" => "published").increment(1);
    histogram!(SANDBOX).record(cost.elapsed.as_secs_f64());
    histogram!(FUEL).record(cost.fuel as f64);
}

/// Counts an uplink by its outcome, as history names it, and by which version of the functions ran. A number of it would
/// be a label without a bound.
pub(crate) fn uplink_decoded(outcome: &'static str, version: &'static str) {
    counter!(OUTCOMES, "outcome" => outcome, "version" => version).increment(1);
}

pub(crate) fn uplink_dropped(kind: Kind) {
    counter!(UPLINKS, "result" => kind.to_string()).increment(1);
}

pub(crate) fn uplink_late() {
    counter!(LATE_UPLINKS).increment(1);
}

pub(crate) fn joined() {
    counter!(JOINS, "result" => "joined").increment(1);
}

pub(crate) fn network_device(result: &'static str) {
    counter!(NETWORK_DEVICES, "result" => result).increment(1);
}

pub(crate) fn not_joined(kind: Kind) {
    counter!(JOINS, "result" => kind.to_string()).increment(1);
}

pub(crate) fn downlink_scheduled() {
    counter!(DOWNLINKS, "result" => "scheduled").increment(1);
}

pub(crate) fn downlink_dropped(kind: Kind) {
    counter!(DOWNLINKS, "result" => kind.to_string()).increment(1);
}

pub(crate) fn function_failed() {
    counter!(FAILURES).increment(1);
}

pub(crate) fn candidate(result: &'static str) {
    counter!(CANDIDATES, "result" => result).increment(1);
}

pub(crate) fn silent(devices: usize) {
    counter!(SILENT).increment(u64::try_from(devices).unwrap_or(u64::MAX));
}

pub(crate) fn output_dropped(messages: u64) {
    counter!(OUTPUT_DROPPED).increment(messages);
}

pub(crate) fn rate_limited(policy: &'static str, calls: u32) {
    counter!(THROTTLED, "policy" => policy).increment(calls.into());
}
