//! Errors at the start of a bridge.

use std::{io, path::PathBuf};

use server::secret_file::SecretFileError;
use types::{Kind, Kinded};

/// Errors at the start of a bridge. While it runs, failures are events, logs and metrics.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is not valid, or a broker, Redis or file cannot be used.
    #[error(transparent)]
    Link(#[from] link::Error),
    /// The address of the network's API is not valid, or its certificate.
    #[error(transparent)]
    Client(#[from] client::Error),
    /// Another process uses the same directory.
    #[error(
        "another bridge runs with the directory `{}`: stop it, or give this one its own with --data",
        path.display()
    )]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The history of the bridge cannot be opened.
    #[error("cannot open the history in {}", dir.display())]
    History {
        /// Its directory.
        dir: PathBuf,
        /// The cause.
        source: history::Error,
    },
    /// The network's API cannot be used.
    #[error("cannot use {network}'s API{}", advice.as_ref().map(|advice| format!(": {advice}")).unwrap_or_default())]
    Api {
        /// The name of the network.
        network: &'static str,
        /// Advice for the operator; none if the cause has it.
        advice: Option<String>,
        /// The cause.
        source: client::Error,
    },
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Link(error) => error.kind(),
            Self::Client(error) => error.kind(),
            Self::Locked { .. } => Kind::Conflict,
            Self::History { source, .. } => source.kind(),
            Self::Api { source, .. } => source.kind(),
        }
    }
}

impl Error {
    /// A setting that is not valid.
    pub fn setting(name: impl Into<String>, reason: impl Into<String>) -> Self {
        link::Error::setting(name, reason).into()
    }

    /// The same for one that a flag of the command sets.
    pub fn flag(name: impl Into<String>, reason: impl Into<String>, flag: &'static str) -> Self {
        link::Error::flag(name, reason, flag).into()
    }

    /// The name of the setting that is not valid, with the problem and its remedy.
    pub fn as_setting(&self) -> Option<(&str, &str)> {
        match self {
            Self::Link(link::Error::Setting { name, reason, .. }) => Some((name.as_str(), reason.as_str())),
            _ => None,
        }
    }

    /// A file that cannot be used in this way.
    pub fn file(action: &'static str, path: PathBuf, source: io::Error) -> Self {
        link::Error::File { action, path, source }.into()
    }

    /// The same for an entry of `[[bridge]]`, which has no flags, and settings below it.
    pub fn in_entry(self) -> Self {
        match self {
            Self::Link(link::Error::Setting { name, reason, .. }) => {
                let name = name.strip_prefix("bridge.").map_or(name.clone(), |name| format!("[[bridge]] {name}"));
                Self::setting(name, reason)
            }
            other => other,
        }
    }
}

impl From<SecretFileError> for Error {
    fn from(error: SecretFileError) -> Self {
        Self::Link(error.into())
    }
}
