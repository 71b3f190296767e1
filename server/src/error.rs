//! Startup errors, as operators read them.

use std::{io, path::PathBuf};

use types::{Kind, Kinded};

/// Why a service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is unknown, or its value is invalid.
    #[error("{0}")]
    Setting(String),
    /// The settings cannot be written as TOML.
    #[error("cannot write the settings as TOML")]
    Print(#[from] toml::ser::Error),
    /// The address cannot be bound.
    #[error("cannot listen on `{address}`: {hint}")]
    Listen {
        /// The address, as configured.
        address: String,
        /// What to do about it.
        hint: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A certificate or key file cannot be read or written.
    #[error("cannot {action} `{}`: check that the directory exists and its permissions", path.display())]
    File {
        /// "read" or "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The certificate or its key is invalid.
    #[error("certificate `{}` not valid: must be PEM, together with its key", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Creating a certificate failed.
    #[error("cannot create a certificate for {names}")]
    MakeCertificate {
        /// The host names.
        names: String,
        /// The library's error.
        source: rcgen::Error,
    },
    /// The component's key pair is invalid or cannot be created.
    #[error("key `{}` not valid: must be an ECDSA key over P-256 as PEM; move it away to get a new one", path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: rcgen::Error,
    },
    /// Logs or metrics are already set up in this process.
    #[error("cannot start {what}: already started in this process")]
    Telemetry {
        /// Logs or metrics.
        what: &'static str,
    },
    /// Signal handlers cannot be installed.
    #[error("cannot install signal handlers")]
    Signals(#[source] io::Error),
    /// The descriptors for gRPC reflection are invalid.
    #[error("cannot describe the gRPC services")]
    Reflection(#[from] tonic_reflection::server::Error),
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Setting(_) | Self::Certificate { .. } | Self::MakeCertificate { .. } | Self::Identity { .. } => {
                Kind::Invalid
            }
            Self::Listen { .. } | Self::File { .. } => Kind::Unavailable,
            Self::Print(_) | Self::Telemetry { .. } | Self::Signals(_) | Self::Reflection(_) => Kind::Internal,
        }
    }
}
