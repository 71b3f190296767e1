//! Errors of reading stored uplinks.

use std::io;

use parquet::errors::ParquetError;
use types::{Kind, Kinded};

/// Reasons why stored uplinks cannot be read. Uplinks that cannot be used are no error: the report counts them.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {name}")]
    Read {
        /// The file.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// A source is not what its name or the options say.
    #[error("{0}")]
    Invalid(String),
    /// PostgreSQL refuses what was asked, or cannot be reached.
    #[error("{text}")]
    Postgres {
        /// The kind, which tells whether the login, the options or the server is at fault.
        kind: Kind,
        /// A description for people, without the password.
        text: String,
        /// The library's error.
        source: Option<tokio_postgres::Error>,
    },
    /// The Things Stack refuses what was asked, or cannot be reached.
    #[error(transparent)]
    Api(#[from] client::Error),
    /// Redis refuses what was asked, or cannot be reached.
    #[error(transparent)]
    Link(#[from] link::Error),
    /// A file is not whole, or not Parquet.
    #[error("{name} is damaged, or not a Parquet file")]
    Parquet {
        /// The file.
        name: String,
        /// The problem.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A thread of the replay ended early.
    #[error("Airlock panicked; please report this bug")]
    Panicked,
}

impl Error {
    /// Names the file that cannot be read as Parquet. The text of a cause is in that of its error already.
    pub(crate) fn parquet(name: &str) -> impl FnOnce(ParquetError) -> Self {
        move |error| {
            let source = match error {
                ParquetError::External(cause) => cause,
                error => error.into(),
            };
            Self::Parquet { name: name.to_owned(), source }
        }
    }
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => Kind::NotFound,
            Self::Read { .. } => Kind::Unavailable,
            Self::Postgres { kind, .. } => *kind,
            Self::Api(error) => error.kind(),
            Self::Link(error) => error.kind(),
            Self::Invalid(_) | Self::Parquet { .. } => Kind::Invalid,
            Self::Panicked => Kind::Internal,
        }
    }
}
