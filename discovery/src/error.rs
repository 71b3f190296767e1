//! What can go wrong in discovery, as far as callers would treat it differently.
//!
//! Clients of v2 look into the texts, so these keep its templates: `… not found`, `… not valid: …`,
//! `permission denied: …`.

use std::fmt;

use server::auth::AuthError;
use types::{Kind, Kinded};

/// What an operation gives.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Why discovery could not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value breaks a rule.
    #[error("{what} not valid: {reason}")]
    Invalid {
        /// Which value.
        what: &'static str,
        /// The rule, or what is allowed.
        reason: String,
    },
    /// An id has a form that ids do not have.
    #[error(transparent)]
    Id(#[from] types::IdError),
    /// A value is no prefix of device addresses.
    #[error(transparent)]
    Prefix(#[from] types::PrefixError),
    /// No service has that name.
    #[error(transparent)]
    Service(#[from] types::UnknownService),
    /// There is no such thing.
    #[error("discovery:{entity} not found")]
    NotFound {
        /// What was looked for, such as `app_id:my-app`.
        entity: String,
    },
    /// The caller may not do that.
    #[error("permission denied: {reason}")]
    Denied {
        /// What it takes.
        reason: String,
    },
    /// Another component serves it, and it is not for the caller to move.
    #[error("{what} overlaps one that is served by {holder}: announce another one")]
    Taken {
        /// What was to be served.
        what: String,
        /// Who serves it.
        holder: String,
    },
    /// The credential is missing, invalid, or cannot be checked now.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// Others changed the same thing at the same time, again and again.
    #[error("{what} was changed by others at the same time: try again")]
    Conflict {
        /// What was to be changed.
        what: String,
    },
    /// The store failed.
    #[error("store: {0}")]
    Store(#[from] store::Error),
    /// What lies in the store is not what discovery puts there.
    #[error("a record of discovery in the store cannot be read")]
    Record(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// A value that breaks a rule.
    pub(crate) fn invalid(what: &'static str, reason: impl fmt::Display) -> Self {
        Self::Invalid { what, reason: reason.to_string() }
    }

    /// Something that the caller may not do.
    pub(crate) fn denied(reason: impl Into<String>) -> Self {
        Self::Denied { reason: reason.into() }
    }

    /// A record that does not read.
    pub(crate) fn record(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Record(source.into())
    }
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid { .. } | Self::Id(_) | Self::Prefix(_) | Self::Service(_) => Kind::Invalid,
            Self::NotFound { .. } => Kind::NotFound,
            Self::Denied { .. } => Kind::Denied,
            Self::Taken { .. } => Kind::AlreadyExists,
            Self::Auth(error) => error.kind(),
            Self::Conflict { .. } => Kind::Conflict,
            Self::Store(error) if error.kind() == store::Kind::Unavailable => Kind::Unavailable,
            Self::Store(_) | Self::Record(_) => Kind::Internal,
        }
    }
}
