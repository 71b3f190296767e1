//! What admission control measures. No label names a tenant.

use metrics::{counter, describe_counter};

use super::Refusal;

const FUEL: &str = "airlock_requests_fuel_total";
const REFUSED: &str = "airlock_requests_refused_total";

/// Registers the help text of each metric.
pub(super) fn describe() {
    describe_counter!(FUEL, "What requests cost their callers, in fuel, by service");
    describe_counter!(
        REFUSED,
        "Requests that were refused before they were handled, by service and reason: tenant (too many of its caller \
         wait), full (too many of all callers wait), or timeout (it waited too long)"
    );
}

/// Counts what a request cost.
pub(super) fn charged(service: &'static str, fuel: u64) {
    counter!(FUEL, "service" => service).increment(fuel);
}

/// Counts a refused request.
pub(super) fn refused(service: &'static str, refusal: Refusal) {
    let reason = match refusal {
        Refusal::TenantFull => "tenant",
        Refusal::Full => "full",
        Refusal::TimedOut => "timeout",
    };
    counter!(REFUSED, "service" => service, "reason" => reason).increment(1);
}
