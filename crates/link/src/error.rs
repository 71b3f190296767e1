//! Errors that prevent a connection.

use std::{io, path::PathBuf};

use types::{Kind, Kinded};

use crate::{CertificateError, secret_file::SecretFileError};

/// Reasons why a connection cannot be set up. Later failures are repaired, logged and counted instead.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is missing or its value is not valid.
    #[error("setting `{name}` not valid: {reason}{}", with(*flag))]
    Setting {
        /// The name of the setting.
        name: String,
        /// The problem and its remedy.
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
    /// A file that a setting names cannot be read, or has no secret.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// A stream cannot be read.
    #[error("cannot read the stream {name}{advice}")]
    Stream {
        /// The kind, which tells whether the login, the key or the server is at fault.
        kind: Kind,
        /// Its key and server.
        name: String,
        /// The remedy, after a colon; empty if all one can do is try again.
        advice: String,
        /// The library's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A certificate or a key is not valid.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Setting { .. } | Self::Certificate(_) | Self::Secret(SecretFileError::Empty { .. }) => Kind::Invalid,
            Self::Stream { kind, .. } => *kind,
            Self::File { .. } | Self::Secret(SecretFileError::Unreadable { .. }) => Kind::Unavailable,
        }
    }
}

impl Error {
    /// Returns the error for a setting whose value is not valid.
    pub fn setting(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Setting { name: name.into(), reason: reason.into(), flag: None }
    }

    /// Like [`Self::setting`], for a setting that a command has a flag for, whose name ends the message.
    pub fn flag(name: impl Into<String>, reason: impl Into<String>, flag: &'static str) -> Self {
        Self::Setting { name: name.into(), reason: reason.into(), flag: Some(flag) }
    }
}

fn with(flag: Option<&'static str>) -> String {
    flag.map(|flag| format!(", with {flag}")).unwrap_or_default()
}
