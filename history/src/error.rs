//! Why history cannot be read or changed.

use std::{
    io,
    path::{Path, PathBuf},
};

use types::{Kind, Kinded};

/// Why history cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory of history cannot be used.
    #[error("cannot {what} `{}`", path.display())]
    File {
        /// What was being done, such as `read`.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file of history is damaged, or another program wrote it.
    #[error("`{}` is not a file of history, or is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Nobody waits for the result any more, or history was closed.
    #[error("the query was stopped")]
    Stopped,
    /// A thread of history ended early.
    #[error("history failed unexpectedly")]
    Task(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Writing what is exported failed.
    #[error("cannot write what is exported")]
    Export(#[source] io::Error),
}

impl Error {
    /// Names what failed at `path`.
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { what, path, source }
    }

    /// What is wrong with a file of history.
    pub(crate) fn damaged(path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Damaged { path: path.to_owned(), source: source.into() }
    }

    /// Whether the disk has no room for more.
    pub(crate) fn is_full(&self) -> bool {
        let Self::File { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// Whether the file is not there any more.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::File { .. } if self.is_full() => Kind::Full,
            Self::File { .. } | Self::Stopped => Kind::Unavailable,
            Self::Damaged { .. } | Self::Task(_) | Self::Export(_) => Kind::Internal,
        }
    }
}
