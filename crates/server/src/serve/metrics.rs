//! Metrics of the listeners and of admission control. No label names a tenant.

use std::time::Duration;

use metrics::{Gauge, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

const TIME: &str = "airlock_request_seconds";
const REQUESTS: &str = "airlock_requests_total";
const WAITING: &str = "airlock_requests_waiting";
const RUNNING: &str = "airlock_requests_running";
const FUEL: &str = "airlock_requests_fuel_total";
const REFUSED: &str = "airlock_requests_refused_total";
const CLOSED: &str = "airlock_connections_closed_total";

/// Registers the help text of each metric.
pub(super) fn describe() {
    describe_histogram!(TIME, Unit::Seconds, "Time of a request in seconds, its wait included, by service and route");
    describe_counter!(REQUESTS, "Requests, by service and HTTP status");
    describe_gauge!(WAITING, "Requests that wait for their turn, by service");
    describe_gauge!(RUNNING, "Requests that are being handled, by service");
    describe_counter!(FUEL, "What requests cost their callers, in fuel, by service");
    describe_counter!(
        REFUSED,
        "Requests that were refused before they were handled, by service and reason: tenant (too many of its caller \
         wait), full (too many of all callers wait), timeout (it waited too long), body (it arrived too slowly), or budget \
         (its caller has too much in memory)"
    );
    describe_counter!(
        CLOSED,
        "Connections that were closed, by reason: address (at once: its address has too many), idle or busy (to make \
         room for another), unread (its client did not read a response), or frames (its client sent too many)"
    );
}

/// Counts a request that was answered; routes are those of the service, never paths of clients.
pub(super) fn answered(service: &'static str, route: String, status: u16, elapsed: Duration) {
    histogram!(TIME, "service" => service, "route" => route).record(elapsed);
    counter!(REQUESTS, "service" => service, "status" => status.to_string()).increment(1);
}

/// Returns the gauge of a service's waiting requests.
pub(super) fn waiting(service: &'static str) -> Gauge {
    gauge!(WAITING, "service" => service)
}

/// Returns the gauge of a service's running requests.
pub(super) fn running(service: &'static str) -> Gauge {
    gauge!(RUNNING, "service" => service)
}

/// Adds the cost of a request to the counter.
pub(super) fn charged(service: &'static str, fuel: u64) {
    counter!(FUEL, "service" => service).increment(fuel);
}

/// Counts a refused request.
pub(super) fn refused(service: &'static str, reason: &'static str) {
    counter!(REFUSED, "service" => service, "reason" => reason).increment(1);
}

/// Counts a connection that was closed.
pub(super) fn connection_closed(reason: &'static str) {
    counter!(CLOSED, "reason" => reason).increment(1);
}
