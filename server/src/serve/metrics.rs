//! What the listeners and admission control measure. No label names a tenant.

use metrics::{counter, describe_counter};

const FUEL: &str = "airlock_requests_fuel_total";
const REFUSED: &str = "airlock_requests_refused_total";
const CLOSED: &str = "airlock_connections_closed_total";

/// Registers the help text of each metric.
pub(super) fn describe() {
    describe_counter!(FUEL, "What requests cost their callers, in fuel, by service");
    describe_counter!(
        REFUSED,
        "Requests that were refused before they were handled, by service and reason: tenant (too many of its caller \
         wait), full (too many of all callers wait), timeout (it waited too long), or body (it arrived too slowly)"
    );
    describe_counter!(CLOSED, "Connections that were closed at once because their address has too many");
}

/// Counts what a request cost.
pub(super) fn charged(service: &'static str, fuel: u64) {
    counter!(FUEL, "service" => service).increment(fuel);
}

/// Counts a refused request.
pub(super) fn refused(service: &'static str, reason: &'static str) {
    counter!(REFUSED, "service" => service, "reason" => reason).increment(1);
}

/// Counts a connection that was closed at once.
pub(super) fn connection_closed() {
    counter!(CLOSED).increment(1);
}
