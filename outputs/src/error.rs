//! Errors of storing messages and of changing webhooks.

use std::fmt;

use types::{Kind, Kinded};

/// Errors of storing messages and of changing webhooks.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value breaks a rule.
    #[error("{what} not valid: {reason}")]
    Invalid {
        /// Name of the value.
        what: &'static str,
        /// The rule, and the allowed values.
        reason: String,
    },
    /// The application has no such webhook.
    #[error("Webhook {0} not found")]
    NotFound(String),
    /// Others kept changing the same records.
    #[error("the webhooks of the application were changed by somebody else at the same time: repeat the change")]
    Conflict,
    /// A webhook is not what its change starts from.
    #[error("webhook {0} was changed by somebody else in between: get it again, and change what it is now")]
    Changed(String),
    /// Too many messages wait to be stored.
    #[error("too many messages wait to be stored: try again later")]
    Busy,
    /// The store failed.
    #[error("{}", .0.summary())]
    Store(#[from] store::Error),
    /// A secret in the store cannot be sealed or opened.
    #[error(transparent)]
    Seal(#[from] server::seal::SealError),
    /// A record in the store cannot be read or written.
    #[error("a record of an output in the store cannot be read")]
    Record(#[from] serde_json::Error),
    /// A setting of an output is missing or its value is not valid.
    #[error("setting `{setting}` of the output `{output}` not valid: it {reason}")]
    Setting {
        /// The name of the setting.
        setting: String,
        /// The name of the output.
        output: String,
        /// The problem, and advice.
        reason: String,
    },
    /// A setting or a file of a connection is not valid.
    #[error(transparent)]
    Link(#[from] link::Error),
    /// A connection cannot be prepared.
    #[error("cannot start the output: {0}")]
    Start(String),
}

impl Error {
    pub(crate) fn invalid(what: &'static str, reason: impl fmt::Display) -> Self {
        Self::Invalid { what, reason: reason.to_string() }
    }

    /// Returns true if the store has no room for more.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Store(error) if error.kind() == store::ErrorKind::Full)
    }

    /// A setting of the output `name` in the list `output.<kind>`.
    pub(crate) fn setting(kind: &str, name: &str, setting: &str, reason: &str) -> Self {
        let setting = format!("output.{kind}.{setting}");
        Self::Setting { setting, output: name.to_owned(), reason: reason.to_owned() }
    }
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid { .. } | Self::Setting { .. } => Kind::Invalid,
            Self::Link(error) => error.kind(),
            Self::NotFound(_) => Kind::NotFound,
            Self::Conflict | Self::Changed(_) => Kind::Conflict,
            Self::Busy => Kind::Unavailable,
            Self::Store(error) if error.kind() == store::ErrorKind::Unavailable => Kind::Unavailable,
            Self::Store(error) if error.kind() == store::ErrorKind::Full => Kind::Full,
            Self::Store(_) | Self::Seal(_) | Self::Record(_) | Self::Start(_) => Kind::Internal,
        }
    }
}
