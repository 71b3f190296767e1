//! What can go wrong in a store, as far as callers would treat it differently.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What caused an error, whichever library it came from.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why the store could not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store is away or failed; a commit may have happened or not.
    #[error("could not {what}: the store is unavailable, try again later")]
    Unavailable {
        /// What was being done.
        what: &'static str,
        /// What went wrong below.
        source: Option<Cause>,
    },
    /// A batch or a list spans several tags.
    #[error("one batch or list has keys of one tag: commit what belongs to another tag by itself")]
    Tags,
    /// A tag, a key or a setting has a form that it may not have.
    #[error("{what} `{value}` is not valid: {rule}")]
    Invalid {
        /// What it was to be.
        what: &'static str,
        /// What was given, shortened.
        value: String,
        /// What is allowed.
        rule: &'static str,
    },
    /// Something is larger than may be kept or asked for.
    #[error("a {what} of {size} is too large: at most {limit} is allowed")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// How large it is, in bytes or pieces.
        size: usize,
        /// How large it may be.
        limit: usize,
    },
    /// A queue has as many messages as it may hold; nothing of the batch was done.
    #[error("queue {queue} is full: take messages from it, then try again")]
    Full {
        /// The key of the queue.
        queue: String,
    },
    /// The process that holds the store refused or failed.
    #[error("{text}")]
    Elsewhere {
        /// The sort of its error.
        kind: Kind,
        /// What it said.
        text: String,
    },
    /// What lies in the store is not what was put there.
    #[error("{what} in the store is damaged: restore it from a copy")]
    Corrupt {
        /// What was read.
        what: String,
        /// What went wrong below.
        source: Option<Cause>,
    },
    /// A later version of this program wrote the store.
    #[error("the store has format {found}, this version reads up to {supported}: use a newer version")]
    Newer {
        /// The format of the store.
        found: u64,
        /// The last format that we know.
        supported: u64,
    },
    /// Another process has the file open.
    #[error("already running: another process uses {path}; stop it, or use Redis to run several")]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The file or its folder cannot be written.
    #[error("could not open {path} for writing: make its folder writable, or choose another one")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// The sort of an error, for those who answer with a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// The store is away: retry.
    Unavailable,
    /// The caller gave something that is not allowed.
    Invalid,
    /// The caller gave or asked for too much.
    TooLarge,
    /// A limit was reached: come back later.
    Exhausted,
    /// The store cannot be opened as it is: a person must act.
    Unusable,
    /// What was kept is damaged.
    Corrupt,
}

impl Error {
    /// The sort of this error.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Elsewhere { kind, .. } => *kind,
            Self::Unavailable { .. } => Kind::Unavailable,
            Self::Tags | Self::Invalid { .. } => Kind::Invalid,
            Self::TooLarge { .. } => Kind::TooLarge,
            Self::Full { .. } => Kind::Exhausted,
            Self::Newer { .. } | Self::Locked { .. } | Self::Unwritable { .. } => Kind::Unusable,
            Self::Corrupt { .. } => Kind::Corrupt,
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
