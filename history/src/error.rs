//! Errors of reading or changing history.

use std::{
    io,
    path::{Path, PathBuf},
};

use parquet::errors::ParquetError;
use server::secret_file::SecretFileError;
use types::{Kind, Kinded};

/// Errors of reading or changing history.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory of history cannot be used.
    #[error("cannot {what} `{}`", path.display())]
    File {
        /// The failed action, such as `read`.
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
        /// The problem.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The bucket cannot be used.
    #[error("cannot {what} in the bucket `{url}`{advice}")]
    Bucket {
        /// The failed action, such as `list`.
        what: &'static str,
        /// The bucket and the folder.
        url: String,
        /// Advice for the operator; empty if there is none.
        advice: &'static str,
        /// True if the object does not exist.
        is_gone: bool,
        /// The error of the server or the connection.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A setting of the bucket is not valid.
    #[error("`{name}` of history.bucket is not valid: {why}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// The problem, and advice.
        why: &'static str,
    },
    /// The file with the secret of the bucket's access key has none.
    #[error("cannot use `secret_access_key_file` of history.bucket")]
    Secret(#[from] SecretFileError),
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

    /// Returns the error of a damaged file of history.
    pub(crate) fn damaged(path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Damaged { path: path.to_owned(), source: source.into() }
    }

    /// Returns the error of a file that cannot be read as Parquet. The text of a cause is in that of its error already.
    pub(crate) fn parquet(path: &Path, source: ParquetError) -> Self {
        match source {
            ParquetError::External(cause) => Self::damaged(path, cause),
            source => Self::damaged(path, source),
        }
    }

    /// Names what failed in a bucket.
    pub(crate) fn bucket(what: &'static str, url: &str, source: &object_store::Error) -> Self {
        let is_gone = matches!(source, object_store::Error::NotFound { .. });
        // Each error of the library has the text of its cause in its own.
        let text = source.to_string();
        // It has no kind for what a server refuses to list.
        let is_refused = ["401 Unauthorized", "403 Forbidden"].iter().any(|status| text.contains(status));
        let advice = if is_refused {
            ": check access_key_id and secret_access_key_file of history.bucket, and what the key may do"
        } else if text.contains("NoSuchBucket") {
            ": check url, endpoint and region of history.bucket"
        } else {
            ""
        };
        Self::Bucket { what, url: url.to_owned(), advice, is_gone, source: text.into() }
    }

    /// Returns true if the disk has no room for more.
    pub(crate) fn is_full(&self) -> bool {
        let Self::File { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// Returns true if the file does not exist any more.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Self::File { source, .. } => source.kind() == io::ErrorKind::NotFound,
            Self::Bucket { is_gone, .. } => *is_gone,
            _ => false,
        }
    }
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::File { .. } if self.is_full() => Kind::Full,
            Self::File { .. } | Self::Bucket { .. } | Self::Stopped => Kind::Unavailable,
            Self::Setting { .. } | Self::Secret(_) => Kind::Invalid,
            Self::Damaged { .. } | Self::Task(_) | Self::Export(_) => Kind::Internal,
        }
    }
}
