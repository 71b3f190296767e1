//! The version of the protocol.

/// MQTT 5 or 3.1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    V5,
    V4,
}
