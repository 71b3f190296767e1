//! The errors of the discovery service, with a variant for each that callers treat differently.
//!
//! Clients of v2 match on the texts, so these keep its templates: `… not found`, `… not valid: …`, `permission denied:
//! …`.

use std::fmt;

use server::{audit::AuditError, auth::AuthError};
use types::{Kind, Kinded, RateLimitExceeded};

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Reasons why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value breaks a rule.
    #[error("{what} not valid: {reason}")]
    Invalid {
        /// The field.
        what: &'static str,
        /// The rule, or the allowed values.
        reason: String,
    },
    /// An id is malformed.
    #[error(transparent)]
    Id(#[from] types::IdError),
    /// A prefix of device addresses is malformed.
    #[error(transparent)]
    Prefix(#[from] types::PrefixError),
    /// There is no such service.
    #[error(transparent)]
    Service(#[from] types::UnknownService),
    /// There is no such component.
    #[error("discovery:{entity} not found")]
    NotFound {
        /// The requested entity, such as `app_id:my-app`.
        entity: String,
    },
    /// The caller lacks the right.
    #[error("permission denied: {reason}")]
    Denied {
        /// The requirement of the operation.
        reason: String,
    },
    /// Another component serves it, and the caller may not move it.
    #[error("{what} overlaps one that is served by {holder}: announce another one")]
    Taken {
        /// The entity that the caller wanted to serve.
        what: String,
        /// The component that serves it.
        holder: String,
    },
    /// There are as many prefixes of device addresses as allowed.
    #[error("there are {0} prefixes already: delete one that is not used any more")]
    TooManyPrefixes(usize),
    /// The credential is missing, invalid, or cannot be checked now.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// Concurrent changes kept interfering.
    #[error("{what} is being changed by others: try again later")]
    Conflict {
        /// The records that the caller wanted to change.
        what: String,
    },
    /// The change cannot be recorded in the audit log.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The store failed.
    #[error("{}", .0.summary())]
    Store(#[from] store::Error),
    /// A record in the store is corrupt.
    #[error("cannot read a record in the store")]
    Record(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// A value that breaks a rule.
    pub(crate) fn invalid(what: &'static str, reason: impl fmt::Display) -> Self {
        Self::Invalid { what, reason: reason.to_string() }
    }

    /// An operation that the caller may not perform.
    pub(crate) fn denied(reason: impl Into<String>) -> Self {
        Self::Denied { reason: reason.into() }
    }

    pub(crate) fn record(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Record(source.into())
    }
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid { .. } | Self::Id(_) | Self::Prefix(_) | Self::Service(_) => Kind::Invalid,
            Self::NotFound { .. } => Kind::NotFound,
            // Waiting does not help: somebody must remove prefixes first.
            Self::Denied { .. } | Self::TooManyPrefixes(_) => Kind::Denied,
            Self::Taken { .. } => Kind::AlreadyExists,
            Self::Auth(error) => error.kind(),
            Self::Audit(error) => error.kind(),
            Self::Conflict { .. } => Kind::Conflict,
            Self::Store(error) if error.kind() == store::ErrorKind::Unavailable => Kind::Unavailable,
            Self::Store(error) if error.kind() == store::ErrorKind::Full => Kind::Full,
            Self::Store(_) | Self::Record(_) => Kind::Internal,
        }
    }

    fn exceeded(&self) -> Option<&RateLimitExceeded> {
        if let Self::Audit(error) = self { error.exceeded() } else { None }
    }

    fn is_cause_logged(&self) -> bool {
        matches!(self, Self::Auth(error) if error.is_cause_logged())
    }
}
