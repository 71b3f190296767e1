//! What can go wrong before a service runs, each with the one line that its operator reads.

use std::{io, path::PathBuf};

use types::{Kind, Kinded};

/// Why something that every service needs cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is unknown or its value is not valid.
    #[error("{0}")]
    Setting(String),
    /// The settings cannot be shown as TOML.
    #[error("cannot write the settings as TOML")]
    Print(#[from] toml::ser::Error),
    /// Nobody can be listened to at this address.
    #[error("cannot listen on `{address}`: {hint}")]
    Listen {
        /// The address, as it was set.
        address: String,
        /// What to do next.
        hint: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// A file of the certificate cannot be read or written.
    #[error("cannot {action} `{}`: check that the folder exists and who may use it", path.display())]
    File {
        /// Read or write.
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Certificate and key cannot be used.
    #[error("certificate `{}` not valid: must be PEM, with the key that belongs to it", path.display())]
    Certificate {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A certificate cannot be made for these names.
    #[error("cannot make a certificate for {names}")]
    MakeCertificate {
        /// The hosts.
        names: String,
        /// What is wrong.
        source: rcgen::Error,
    },
    /// The key pair of a component cannot be used or made.
    #[error("key `{}` not valid: must be an ECDSA key over P-256 as PEM; move it away to get a new one", path.display())]
    Identity {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: rcgen::Error,
    },
    /// Logs or metrics were set up before in this process.
    #[error("cannot start {what}: this process has started it before")]
    Telemetry {
        /// Logs or metrics.
        what: &'static str,
    },
    /// The process cannot hear signals.
    #[error("cannot wait for the signals that end this process")]
    Signals(#[source] io::Error),
    /// The descriptors for gRPC reflection do not read.
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
