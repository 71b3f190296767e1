//! Subscription to a stream, as a consumer of its group.

use super::{node::Node, settings::StreamSettings};

/// The stream to read, and the consumer that reads it.
pub struct StreamSubscription {
    /// The server.
    pub node: Node,
    /// The settings of its connection.
    pub settings: StreamSettings,
    /// The key of the stream.
    pub key: String,
    /// The name of this process in the group: after a restart, it continues with the entries that it left unfinished.
    pub consumer: String,
    /// Maximum number of entries that are not acknowledged yet.
    pub in_flight_max: u16,
}
