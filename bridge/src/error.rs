//! Why a bridge cannot start.

use std::{io, path::PathBuf};

use server::secret_file::SecretFileError;
use types::{Kind, Kinded};

/// Why a bridge cannot start. While it runs, failures are events, logs and metrics.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is missing or its value is not valid.
    #[error("setting `{name}` not valid: {reason}")]
    Setting {
        /// The name of the setting.
        name: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("cannot {action} `{}`: check that it exists and who may use it", path.display())]
    File {
        /// `read`, `write` or `lock`.
        action: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file has no secret.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// Another process uses the same directory.
    #[error(
        "another bridge runs with the directory `{}`: stop it, or give this one its own with --data",
        path.display()
    )]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The network's API cannot be used.
    #[error("cannot use {network}'s API: {advice}")]
    Api {
        /// The name of the network.
        network: &'static str,
        /// What to do.
        advice: String,
        /// The cause.
        source: client::Error,
    },
    /// A certificate is not valid.
    #[error(transparent)]
    Client(#[from] client::Error),
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Setting { .. } | Self::Secret(SecretFileError::Empty { .. }) => Kind::Invalid,
            Self::File { .. } | Self::Secret(SecretFileError::Unreadable { .. }) => Kind::Unavailable,
            Self::Locked { .. } => Kind::Conflict,
            Self::Api { source, .. } | Self::Client(source) => source.kind(),
        }
    }
}

impl Error {
    pub(crate) fn setting(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Setting { name: name.into(), reason: reason.into() }
    }
}
