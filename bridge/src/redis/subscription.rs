//! Which stream is read, and as whom.

use super::{node::Node, settings::StreamSettings};

/// What to read.
pub(crate) struct StreamSubscription {
    pub(crate) node: Node,
    pub(crate) settings: StreamSettings,
    pub(crate) key: String,
    /// The name of this process in the group: what it left unfinished, it continues with after a restart.
    pub(crate) consumer: String,
    /// Maximum number of entries that are not acknowledged yet.
    pub(crate) in_flight_max: u16,
}
