//! What sort of failure an error is: the word that one table turns into HTTP and gRPC.

use std::fmt;

/// The sort of a failure, as far as a caller would treat it differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The request is malformed or breaks a rule: change it.
    Invalid,
    /// There is no valid credential: log in.
    Unauthenticated,
    /// The credential lacks the right.
    Denied,
    /// There is no such thing, or none that the caller may see.
    NotFound,
    /// The name is taken.
    AlreadyExists,
    /// Something else changed it at the same time: read again and retry.
    Conflict,
    /// A limit was reached: come back later.
    Exhausted,
    /// The request is larger than is accepted.
    TooLarge,
    /// Something this needs is away: retry.
    Unavailable,
    /// It took longer than it may.
    Timeout,
    /// This version cannot do that.
    Unsupported,
    /// Our mistake; the log says more.
    Internal,
}

/// An error that knows its sort.
pub trait Kinded: std::error::Error {
    /// The sort of this failure.
    fn kind(&self) -> Kind;
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Invalid => "invalid",
            Self::Unauthenticated => "unauthenticated",
            Self::Denied => "denied",
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::Conflict => "conflict",
            Self::Exhausted => "exhausted",
            Self::TooLarge => "too_large",
            Self::Unavailable => "unavailable",
            Self::Timeout => "timeout",
            Self::Unsupported => "unsupported",
            Self::Internal => "internal",
        })
    }
}
