//! What the broker measures. No label names an application or a device.

use metrics::{counter, describe_counter, describe_gauge, gauge};

const CONNECTIONS: &str = "airlock_mqtt_connections";
const REFUSED: &str = "airlock_mqtt_refused_total";

/// Registers the help text of each metric.
pub(crate) fn describe() {
    describe_gauge!(CONNECTIONS, "Connected MQTT clients");
    describe_counter!(REFUSED, "MQTT connections that were refused");
}

pub(crate) fn connected() {
    gauge!(CONNECTIONS).increment(1.0);
}

pub(crate) fn disconnected() {
    gauge!(CONNECTIONS).decrement(1.0);
}

pub(crate) fn refused() {
    counter!(REFUSED).increment(1);
}
