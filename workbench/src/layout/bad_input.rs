//! Reasons why codecs cannot be read, or reports cannot be written.

use std::io;

/// Maximum memory of all codecs together, in bytes.
pub(super) const MEMORY_BYTES_MAX: u64 = 512 << 20;

/// Reasons why codecs could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BadInput {
    /// A file cannot be read.
    #[error("cannot read {file}")]
    File {
        /// The file, as given.
        file: String,
        /// The cause.
        source: io::Error,
    },
    /// A line is not a valid codec.
    #[error("{file}, line {line}: {reason}")]
    Line {
        /// The file, as given.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The problem, without control characters.
        reason: String,
    },
    /// A file has examples of a script that is not there.
    #[error("{file}, line 1: {reason}")]
    Orphan {
        /// The file, as given.
        file: String,
        /// The missing part.
        reason: String,
    },
    /// A script that a file with examples names is not there.
    #[error("cannot read {file}")]
    NoScript {
        /// The script, as given.
        file: String,
        /// The cause.
        source: io::Error,
    },
    /// Standard input is named twice.
    #[error("`-` appears more than once: standard input can be read only once")]
    InputTwice,
    /// The codecs take too much memory.
    #[error("these files and their scripts take more than {} MiB of memory: check them in several runs", MEMORY_BYTES_MAX >> 20)]
    TooLarge,
    /// There is nothing to test.
    #[error("{0}")]
    Nothing(String),
    /// The request cannot be carried out.
    #[error("{0}")]
    Request(String),
    /// A file cannot be written.
    #[error("cannot write {file}")]
    Unwritable {
        /// The file, as given.
        file: String,
        /// The cause.
        source: io::Error,
    },
    /// Further ones, which are not told.
    #[error("and {0} more")]
    More(usize),
    /// Several of the above, which have been reported.
    #[error("{0} files or lines could not be read or written")]
    Several(usize),
}

impl BadInput {
    /// The file and line to which it belongs.
    pub fn place(&self) -> Option<(&str, u64)> {
        match self {
            Self::File { file, .. }
            | Self::Unwritable { file, .. }
            | Self::Orphan { file, .. }
            | Self::NoScript { file, .. } => Some((file, 1)),
            Self::Line { file, line, .. } => Some((file, *line)),
            _ => None,
        }
    }

    /// Describes the problem, with its place and cause.
    pub fn describe(&self) -> String {
        match self {
            Self::File { source, .. } | Self::Unwritable { source, .. } | Self::NoScript { source, .. } => {
                format!("{self}: {source}")
            }
            other => other.to_string(),
        }
    }

    /// Describes the problem, without its place.
    pub fn reason(&self) -> String {
        match self {
            Self::File { source, .. } | Self::NoScript { source, .. } => format!("cannot be read: {source}"),
            Self::Unwritable { source, .. } => format!("cannot be written: {source}"),
            Self::Line { reason, .. } | Self::Orphan { reason, .. } => reason.clone(),
            other => other.to_string(),
        }
    }

    /// Returns true if it is about examples in a tree whose script is missing. Other codecs are not affected.
    pub fn is_orphan(&self) -> bool {
        matches!(self, Self::Orphan { .. } | Self::NoScript { .. })
    }

    /// The same problem of a file that was asked for by its name, which is not there for others.
    pub(super) fn of_named(self) -> Self {
        match self {
            Self::Orphan { file, reason } => Self::Line { file, line: 1, reason },
            Self::NoScript { file, source } => Self::File { file, source },
            other => other,
        }
    }

    /// Returns the number of problems that it stands for.
    pub fn count(&self) -> usize {
        match self {
            Self::More(count) | Self::Several(count) => *count,
            _ => 1,
        }
    }
}
