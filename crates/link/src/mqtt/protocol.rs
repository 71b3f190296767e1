//! The version of the protocol.

/// MQTT 5 or 3.1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// MQTT 5.
    V5,
    /// MQTT 3.1.1.
    V4,
}
