//! Why a bridge cannot start.

use std::{io, path::PathBuf};

use server::secret_file::SecretFileError;
use types::{Kind, Kinded};

/// Why a bridge cannot start. While it runs, failures are events, logs and metrics.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is missing or its value is not valid.
    #[error("setting `{name}` not valid: {reason}{}", with(*flag))]
    Setting {
        /// The name of the setting.
        name: String,
        /// What is wrong, and what to do.
        reason: String,
        /// The flag of a command that sets it, too.
        flag: Option<&'static str>,
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
        Self::Setting { name: name.into(), reason: reason.into(), flag: None }
    }

    /// The same for a setting that a command has a flag for, whose name ends the message.
    pub(crate) fn flag(name: impl Into<String>, reason: impl Into<String>, flag: &'static str) -> Self {
        Self::Setting { name: name.into(), reason: reason.into(), flag: Some(flag) }
    }

    /// The same for an entry of `[[bridge]]`, which has no flags, and settings below it.
    pub(crate) fn in_entry(self) -> Self {
        match self {
            Self::Setting { name, reason, .. } => {
                let name = name.strip_prefix("bridge.").map_or(name.clone(), |name| format!("[[bridge]] {name}"));
                Self::Setting { name, reason, flag: None }
            }
            other => other,
        }
    }
}

fn with(flag: Option<&'static str>) -> String {
    flag.map(|flag| format!(", with {flag}")).unwrap_or_default()
}
