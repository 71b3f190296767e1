//! What the broker measures. No label names an application or a device.

use metrics::{counter, describe_counter, describe_gauge, gauge};

const MQTT_CONNECTIONS: &str = "airlock_mqtt_connections";
const MQTT_REFUSED: &str = "airlock_mqtt_refused_total";

/// Registers the help text of each metric.
pub(crate) fn describe() {
    describe_gauge!(MQTT_CONNECTIONS, "Connected MQTT clients");
    describe_counter!(MQTT_REFUSED, "MQTT connections that were refused");
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
