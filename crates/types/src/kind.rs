//! Error kinds, which `server::status` maps to HTTP and gRPC status codes.

mod rate_limit_exceeded;

use std::fmt;

pub use self::rate_limit_exceeded::RateLimitExceeded;

/// Kinds of errors, by a caller's way to deal with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The request is malformed or breaks a rule: change it.
    Invalid,
    /// The credential is missing or invalid: log in.
    Unauthenticated,
    /// The credential lacks the right.
    Denied,
    /// It does not exist, or the caller may not see it.
    NotFound,
    /// The name is taken.
    AlreadyExists,
    /// A concurrent change interfered: read again and repeat the change.
    Conflict,
    /// A limit was reached: try again later.
    Exhausted,
    /// The caller's share of the storage, or the disk, is full: delete something.
    Full,
    /// The request is too large.
    TooLarge,
    /// A service or store that this needs is unavailable: try again later.
    Unavailable,
    /// The deadline passed.
    Timeout,
    /// This version does not support the request.
    Unsupported,
    /// A bug or corrupt data on our side; the log has details.
    Internal,
}

/// An error that has a kind.
pub trait Kinded: std::error::Error {
    /// The kind of this error.
    fn kind(&self) -> Kind;

    /// The rate limit that refused the call, if one did; responses then say when to try again.
    fn exceeded(&self) -> Option<&RateLimitExceeded> {
        None
    }

    /// Returns true if the cause is logged once elsewhere, so that the calls that fail because of it need not log it.
    fn is_cause_logged(&self) -> bool {
        false
    }
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
            Self::Full => "full",
            Self::TooLarge => "too_large",
            Self::Unavailable => "unavailable",
            Self::Timeout => "timeout",
            Self::Unsupported => "unsupported",
            Self::Internal => "internal",
        })
    }
}
