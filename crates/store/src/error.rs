//! Errors of a store.

use std::{path::PathBuf, sync::Arc};

use serde::{Deserialize, Serialize};

/// The error of whichever library is below.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Reasons why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store is unavailable or failed; a commit may or may not have been applied.
    #[error("cannot {what}: the store is unavailable: try again later")]
    Unavailable {
        /// The operation, as a verb and its object.
        what: &'static str,
        /// The cause, if one is known.
        source: Option<Cause>,
    },
    /// The store failed for good, as on a full disk.
    #[error("the store failed and accepts no more writes: check the disk, then start again")]
    Failed {
        /// The cause.
        source: Arc<redb::Error>,
    },
    /// A batch that may be refused to save room was refused.
    #[error("{reason}")]
    Full {
        /// The budget that is used up, and the remedy.
        reason: String,
    },
    /// A batch or a list has keys of different tags.
    #[error("one batch or list has keys of one tag: commit what belongs to another tag by itself")]
    Tags,
    /// The store makes no snapshots.
    #[error("the store is Redis: back up its own files")]
    NoSnapshots,
    /// A tag, a key or a setting is not valid.
    #[error("{what} `{value}` is not valid: {rule}")]
    Invalid {
        /// The kind of value, such as `tag`.
        what: &'static str,
        /// The value, shortened.
        value: String,
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// A value, batch or request is too large.
    #[error("a {what} of {size} is too large: at most {limit} is allowed")]
    TooLarge {
        /// The kind of thing that is too large.
        what: &'static str,
        /// Its size, in bytes or items.
        size: usize,
        /// The maximum size.
        limit: usize,
    },
    /// The process that has the store open returned an error.
    #[error("{text}")]
    Elsewhere {
        /// The kind of its error.
        kind: ErrorKind,
        /// The text of its error.
        text: String,
    },
    /// Stored data is damaged.
    #[error("{what} in the store is damaged: restore it from a backup")]
    Corrupt {
        /// The damaged data.
        what: String,
        /// The cause, if one is known.
        source: Option<Cause>,
    },
    /// A newer version of Airlock wrote the store.
    #[error("the store has format {found}, this version reads up to {supported}: use a newer version")]
    Newer {
        /// The format of the store.
        found: u64,
        /// The newest format that this version reads.
        supported: u64,
    },
    /// Another process has the file open.
    #[error("already running: another process uses {path}; stop it, or use Redis to run several")]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be opened for writing.
    #[error("cannot open {path} for writing: make its directory writable, or choose another one")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// The kind of an error, for callers that answer with a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorKind {
    /// The store is unavailable: try again later.
    Unavailable,
    /// The call is not valid.
    Invalid,
    /// The call is too large.
    TooLarge,
    /// There is no room for it: delete something first.
    Full,
    /// The store cannot be opened until somebody repairs or moves it.
    Unusable,
    /// Stored data is damaged.
    Corrupt,
}

impl Error {
    /// The kind of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Elsewhere { kind, .. } => *kind,
            Self::Unavailable { .. } | Self::Failed { .. } => ErrorKind::Unavailable,
            Self::Tags | Self::NoSnapshots | Self::Invalid { .. } => ErrorKind::Invalid,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::Full { .. } => ErrorKind::Full,
            Self::Newer { .. } | Self::Locked { .. } | Self::Unwritable { .. } => ErrorKind::Unusable,
            Self::Corrupt { .. } => ErrorKind::Corrupt,
        }
    }

    /// The text for whoever made the request: why there is no room, or else only that the store failed.
    pub fn summary(&self) -> String {
        match self.kind() {
            ErrorKind::Full => self.to_string(),
            _ => "cannot use the store".to_owned(),
        }
    }

    pub(crate) fn unavailable(what: &'static str, source: impl Into<Cause>) -> Self {
        Self::Unavailable { what, source: Some(source.into()) }
    }

    pub(crate) fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt { what: what.into(), source: None }
    }

    pub(crate) fn invalid(what: &'static str, value: &str, rule: &'static str) -> Self {
        Self::Invalid { what, value: value.chars().take(64).collect(), rule }
    }
}
