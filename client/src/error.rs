//! Why a call failed, from here or from there.

use std::time::Duration;

use types::{Kind, Kinded};

/// What a call gives.
pub type Result<T> = std::result::Result<T, Error>;

/// Something further down that went wrong.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be one.
    #[error("address `{address}` not valid: must be {expected}")]
    Address {
        /// What was given.
        address: String,
        /// What it must look like.
        expected: &'static str,
    },
    /// The certificate that was to be trusted is none.
    #[error("certificate not valid: must be PEM, as in the announcement of the component")]
    Certificate {
        /// What is wrong with it.
        source: Cause,
    },
    /// The credential has bytes that cannot be sent.
    #[error("credential not valid: must be printable ASCII")]
    Credential,
    /// Nobody answers there, or not in a way that we trust.
    #[error("could not reach the {service} at {address}: check that it runs there and that the address is right")]
    Unreachable {
        /// What was called.
        service: &'static str,
        /// Where.
        address: String,
        /// What happened.
        source: Cause,
    },
    /// No answer came in time; the call may have had its effect.
    #[error("the {service} at {address} did not answer in time: try again later")]
    Timeout {
        /// What was called.
        service: &'static str,
        /// Where.
        address: String,
    },
    /// The other side said no; the message is its own.
    #[error("{message}")]
    Refused {
        /// The sort of the failure.
        kind: Kind,
        /// What the other side said, verbatim.
        message: String,
        /// When it asks to be called again.
        retry_after: Option<Duration>,
    },
    /// The answer is larger than any should be.
    #[error("the answer of the {service} at {address} has more than {bytes_max} bytes: ask for less at once")]
    TooLarge {
        /// What was called.
        service: &'static str,
        /// Where.
        address: String,
        /// The most bytes that are read.
        bytes_max: usize,
    },
    /// The answer is not what this version understands.
    #[error("could not understand the answer of the {service} at {address}: check that the address is right")]
    Unreadable {
        /// What was called.
        service: &'static str,
        /// Where.
        address: String,
        /// What is wrong with it.
        source: Cause,
    },
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Address { .. } | Self::Certificate { .. } => Kind::Invalid,
            Self::Credential => Kind::Unauthenticated,
            Self::Unreachable { .. } => Kind::Unavailable,
            Self::Timeout { .. } => Kind::Timeout,
            Self::Refused { kind, .. } => *kind,
            Self::TooLarge { .. } | Self::Unreadable { .. } => Kind::Internal,
        }
    }
}
