//! Errors of the clients.

mod reason;

use std::time::Duration;

use types::{Kind, Kinded};

use self::reason::{is_certificate, reason};

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// The error of whichever library is below.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The error of a service that does not know a call, because it is another one than expected.
pub(crate) fn unknown_call(service: &str, address: &str) -> String {
    format!("what runs at {address} does not know this call: check that this is the address of the {service}")
}

/// Reasons why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is not valid.
    #[error("address `{address}` not valid: must be {expected}")]
    Address {
        /// The text that is no such address.
        address: String,
        /// The form that it must have.
        expected: &'static str,
    },
    /// The certificate to trust is not valid.
    #[error(transparent)]
    Certificate(#[from] link::CertificateError),
    /// The credential has characters that a header cannot hold.
    #[error("credential not valid: must be printable ASCII")]
    Credential,
    /// The service is not reachable, or its certificate is not trusted.
    #[error("cannot reach the {service} at {address}: check that it runs there and that the address is right")]
    Unreachable {
        /// Such as `account service`.
        service: &'static str,
        /// The address that was called.
        address: String,
        /// The cause.
        source: Cause,
    },
    /// The connection was lost before a response came; the call may have taken effect.
    #[error("the connection to the {service} at {address} was lost before it answered: try again later")]
    Lost {
        /// Such as `account service`.
        service: &'static str,
        /// The address that was called.
        address: String,
        /// The cause.
        source: Cause,
    },
    /// No response came in time; the call may have taken effect.
    #[error("the {service} at {address} did not answer in time: try again later")]
    Timeout {
        /// Such as `account service`.
        service: &'static str,
        /// The address that was called.
        address: String,
    },
    /// The program sends or receives too slowly or too much for the queues of the client.
    #[error(
        "{messages_max} messages are waiting in the client of the {service} at {address}: receive them more often, \
             or send fewer"
    )]
    QueueFull {
        /// Such as `account service`.
        service: &'static str,
        /// The address that was called.
        address: String,
        /// The size of the queue.
        messages_max: usize,
    },
    /// The program received too slowly: messages were dropped, and the newest arrive again.
    #[error("the client of the {service} at {address} dropped {count} messages: receive them more often")]
    Missed {
        /// Such as `account service`.
        service: &'static str,
        /// The address that was called.
        address: String,
        /// Number of messages dropped.
        count: u64,
    },
    /// The connection ended earlier, with an error that connecting again does not mend.
    #[error("the connection to the {service} at {address} has ended: connect again with a valid credential")]
    Ended {
        /// Such as `account service`.
        service: &'static str,
        /// The address that was called.
        address: String,
    },
    /// The service answered with an error.
    #[error("{message}")]
    Refused {
        /// The kind of the error.
        kind: Kind,
        /// The text of the error, unchanged.
        message: String,
        /// Time after which the service asks to be called again.
        retry_after: Option<Duration>,
    },
    /// An error that does not look like one of the service: a proxy may have answered in its place.
    #[error("{message}")]
    Foreign {
        /// The kind of the error, by its status.
        kind: Kind,
        /// The text of the error, unchanged, or its status.
        message: String,
        /// Time after which to call again.
        retry_after: Option<Duration>,
    },
    /// The service did not accept the credential that authenticates the call, and said so in `WWW-Authenticate`.
    #[error("{message}")]
    NotAccepted {
        /// The text of the error, unchanged.
        message: String,
    },
    /// The response is too large.
    #[error("the response of the {service} at {address} has more than {bytes_max} bytes: request a smaller page")]
    TooLarge {
        /// Such as `account service`.
        service: &'static str,
        /// The address that was called.
        address: String,
        /// The maximum size.
        bytes_max: usize,
    },
    /// The response cannot be parsed.
    #[error("cannot understand the response of the {service} at {address}: check that the address is right")]
    Unreadable {
        /// Such as `account service`.
        service: &'static str,
        /// The address that was called.
        address: String,
        /// The cause.
        source: Cause,
    },
}

impl Error {
    /// Describes for users why a connection failed or was lost; `None` if that is not known. Developers read the source
    /// instead.
    pub fn reason(&self) -> Option<String> {
        reason(self)
    }

    /// Returns true if the text says what to do. Those of services may say it or not.
    pub fn has_advice(&self) -> bool {
        !matches!(self, Self::Refused { .. } | Self::Foreign { .. } | Self::NotAccepted { .. })
    }

    /// Returns true if the service has a certificate that is not trusted here.
    pub fn is_untrusted(&self) -> bool {
        is_certificate(self)
    }

    /// Returns true if the call may have taken effect although no response came.
    pub fn may_have_happened(&self) -> bool {
        matches!(self, Self::Lost { .. }) || self.kind() == Kind::Timeout
    }
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Address { .. } | Self::Certificate(_) => Kind::Invalid,
            Self::Credential | Self::NotAccepted { .. } => Kind::Unauthenticated,
            Self::Unreachable { .. } | Self::Lost { .. } | Self::Ended { .. } => Kind::Unavailable,
            Self::QueueFull { .. } | Self::Missed { .. } => Kind::Exhausted,
            Self::Timeout { .. } => Kind::Timeout,
            Self::Refused { kind, .. } | Self::Foreign { kind, .. } => *kind,
            Self::TooLarge { .. } | Self::Unreadable { .. } => Kind::Internal,
        }
    }
}
