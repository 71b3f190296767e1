//! The broker's metrics. No label names an application or a device; `router/series.rs` has those of applications.

pub(crate) mod counters;

use metrics::{Gauge, counter, describe_counter, describe_gauge, gauge};

const MQTT_CONNECTIONS: &str = "airlock_mqtt_connections";
const MQTT_QUEUED: &str = "airlock_mqtt_queued_messages";
const MQTT_QUEUED_BYTES: &str = "airlock_mqtt_queued_bytes";
const MQTT_DROPPED: &str = "airlock_mqtt_dropped_total";
const MQTT_REFUSED: &str = "airlock_mqtt_refused_total";
const MQTT_RATE_LIMITED: &str = "airlock_mqtt_rate_limited_total";

/// Registers the help text of each metric.
pub(crate) fn describe() {
    describe_gauge!(MQTT_CONNECTIONS, "Connected MQTT clients");
    describe_gauge!(MQTT_QUEUED, "Messages in memory that wait for MQTT clients; one for several clients counts once");
    describe_gauge!(MQTT_QUEUED_BYTES, "Memory that these messages take, in bytes");
    describe_counter!(
        MQTT_DROPPED,
        "Messages that MQTT clients did not get because they were away too long, read too slowly or cannot take so large a packet"
    );
    describe_counter!(MQTT_REFUSED, "MQTT connections that were refused");
    describe_counter!(
        MQTT_RATE_LIMITED,
        "MQTT connections that were refused because clients connect too often, by limit"
    );
}

/// Returns the gauge of messages that wait for clients.
pub(crate) fn queued_messages() -> Gauge {
    gauge!(MQTT_QUEUED)
}

/// The memory that messages take which wait for clients.
pub(crate) fn queued_bytes() -> Gauge {
    gauge!(MQTT_QUEUED_BYTES)
}

/// Counts messages that clients did not get.
pub(crate) fn dropped(messages: u64) {
    if messages > 0 {
        counter!(MQTT_DROPPED).increment(messages);
    }
}

pub(crate) fn connected() {
    gauge!(MQTT_CONNECTIONS).increment(1.0);
}

pub(crate) fn disconnected() {
    gauge!(MQTT_CONNECTIONS).decrement(1.0);
}

pub(crate) fn refused() {
    counter!(MQTT_REFUSED).increment(1);
}

pub(crate) fn rate_limited(policy: &'static str) {
    counter!(MQTT_RATE_LIMITED, "policy" => policy).increment(1);
}
