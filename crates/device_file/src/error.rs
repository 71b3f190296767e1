//! Reasons why a file as a whole cannot be read or written.

use std::io;

/// Reasons why a file as a whole cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No column says which device a row is about.
    #[error("its first row must name the columns, at least dev_id or dev_eui")]
    Columns,
    /// The first row cannot be read.
    #[error("its first row cannot be read")]
    Header(#[source] csv::Error),
    /// It is not JSON.
    #[error("it is not valid JSON")]
    Json(#[source] serde_json::Error),
    /// It begins like UTF-16.
    #[error("it begins as UTF-16, but is not")]
    Utf16,
    /// It has too many devices.
    #[error("it has more than {0} devices: split it")]
    TooMany(usize),
    /// A row cannot be written.
    #[error("cannot write a row")]
    Row(#[source] csv::Error),
    /// A device cannot be written.
    #[error("cannot write a device")]
    Device(#[source] serde_json::Error),
    /// The output fails.
    #[error("cannot write")]
    Write(#[source] io::Error),
}
