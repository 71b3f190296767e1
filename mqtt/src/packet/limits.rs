//! Limits that the broker announces to clients of MQTT 5, and that hold for all.

/// Maximum size of a message that the handler may publish, with its topic, in bytes; clients may send less.
pub const PACKET_BYTES_MAX: usize = 256 * 1024;

/// Maximum size of a packet that a client may send, in bytes.
pub(crate) const CLIENT_PACKET_BYTES_MAX: u32 = 64 * 1024;

/// Maximum size of the properties of a publication, a CONNECT or a will, in bytes. In memory they take many times as
/// much.
pub(crate) const PROPERTIES_BYTES_MAX: usize = 1024;

/// Number of publications with QoS 1 and 2 that a client of MQTT 5 may send before one is acknowledged.
pub(crate) const RECEIVE_MAX: u16 = 32;

/// Maximum number of topic aliases of a client.
pub(crate) const TOPIC_ALIASES_MAX: u16 = 16;
