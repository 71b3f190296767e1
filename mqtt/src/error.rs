//! Errors of starting the broker.

use types::{Kind, Kinded};

/// Errors of starting the broker.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address cannot be bound.
    #[error(transparent)]
    Listen(#[from] server::Error),
    /// A listening socket has no address.
    #[error("cannot start the MQTT broker")]
    Start(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Listen(error) => error.kind(),
            Self::Start(_) => Kind::Internal,
        }
    }
}
