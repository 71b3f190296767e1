//! Errors at start-up, in one line for the operator, and the status of every kind of error.

pub mod status;

use std::{io, path::PathBuf};

use types::{Kind, Kinded};

/// Errors that keep a service from starting.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is unknown or its value is not valid.
    #[error("{0}")]
    Setting(String),
    /// The settings cannot be written as TOML.
    #[error("cannot write the settings as TOML")]
    Print(#[from] toml::ser::Error),
    /// The address cannot be bound.
    #[error("cannot listen on `{address}`: {hint}")]
    Listen {
        /// The address from the settings.
        address: String,
        /// The remedy.
        hint: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A file of a certificate, or the audit file, cannot be read or written.
    #[error("cannot {action} `{}`: check that the directory exists and who may use it", path.display())]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The certificate or its key is not valid.
    #[error("certificate `{}` not valid: must be PEM, with the key that belongs to it", path.display())]
    Certificate {
        /// The path of the certificate.
        path: PathBuf,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No certificate can be created for these host names.
    #[error("cannot create a certificate for {names}")]
    CreateCertificate {
        /// The host names.
        names: String,
        /// The cause.
        source: rcgen::Error,
    },
    /// The key pair of a component is not valid, or cannot be created.
    #[error("key `{}` not valid: must be an ECDSA key over P-256 as PEM; move it away to get a new one", path.display())]
    Identity {
        /// The path of the key.
        path: PathBuf,
        /// The cause.
        source: rcgen::Error,
    },
    /// Logs or metrics were started twice in this process.
    #[error("cannot start {what}: already started in this process")]
    Telemetry {
        /// `logs` or `metrics`.
        what: &'static str,
    },
    /// Signal handlers cannot be installed.
    #[error("cannot listen for termination signals")]
    Signals(#[source] io::Error),
    /// The descriptors for gRPC reflection are not valid.
    #[error("cannot set up gRPC reflection")]
    Reflection(#[from] tonic_reflection::server::Error),
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Setting(_) | Self::Certificate { .. } | Self::CreateCertificate { .. } | Self::Identity { .. } => {
                Kind::Invalid
            }
            Self::Listen { .. } | Self::File { .. } => Kind::Unavailable,
            Self::Print(_) | Self::Telemetry { .. } | Self::Signals(_) | Self::Reflection(_) => Kind::Internal,
        }
    }
}
