//! Why the broker cannot start.

use std::io;

use types::{Kind, Kinded};

/// Why the broker cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address cannot be bound.
    #[error("cannot listen for MQTT clients on {address}: stop what listens there, or choose another address")]
    Listen {
        /// The address, as configured.
        address: String,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// The MQTT engine failed to start.
    #[error("cannot start the MQTT broker")]
    Engine(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Listen { .. } => Kind::Unavailable,
            Self::Engine(_) => Kind::Internal,
        }
    }
}
