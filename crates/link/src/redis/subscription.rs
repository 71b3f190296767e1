//! Which stream is read, and as whom.

use super::{node::Node, settings::StreamSettings};

/// What to read.
pub struct StreamSubscription {
    /// The server.
    pub node: Node,
    /// The settings of its connection.
    pub settings: StreamSettings,
    /// The key of the stream.
    pub key: String,
    /// The name of this process in the group: what it left unfinished, it continues with after a restart.
    pub consumer: String,
    /// Maximum number of entries that are not acknowledged yet.
    pub in_flight_max: u16,
}
