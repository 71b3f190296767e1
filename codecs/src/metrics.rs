//! The metrics of the codec service. No label names a codec.

use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

const MESSAGES: &str = "airlock_codecs_messages_total";
const CODECS: &str = "airlock_codecs";
const SANDBOX: &str = "airlock_codecs_sandbox_seconds";
const FUEL: &str = "airlock_codecs_sandbox_fuel";

pub(crate) fn describe() {
    describe_counter!(MESSAGES, "Messages by result: decoded, encoded, failed, or busy (no sandbox was free in time)");
    describe_gauge!(CODECS, "Codecs in the directory");
    describe_histogram!(SANDBOX, metrics::Unit::Seconds, "Time of a message in its sandbox");
    describe_histogram!(FUEL, metrics::Unit::Count, "Fuel that a message used");
}

pub(crate) fn message(result: &'static str) {
    counter!(MESSAGES, "result" => result).increment(1);
}

pub(crate) fn codecs(count: usize) {
    gauge!(CODECS).set(count as f64);
}

pub(crate) fn ran(fuel: u64, elapsed: Duration) {
    histogram!(SANDBOX).record(elapsed.as_secs_f64());
    histogram!(FUEL).record(fuel as f64);
}
