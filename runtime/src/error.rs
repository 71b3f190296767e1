//! Errors of starting an engine or its workers, and of reading modules.

use std::io;

/// Reasons why functions cannot run at all. A failing function is a [`crate::Failure`] instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The built-in guest does not fit this host.
    #[error("cannot use the built-in guest: {0}: rebuild it with `runtime/guest/build.sh`")]
    Guest(String),
    /// A setting is out of range, or contradicts another.
    #[error("sandbox settings not valid: {0}")]
    Settings(&'static str),
    /// Wasmtime refused its configuration or the guest.
    #[error("cannot load or compile the built-in guest for this processor")]
    Compile(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The operating system has no memory for sandboxes.
    #[error(
        "cannot map memory for a sandbox: check the limits on virtual memory (`ulimit -v`) and open files (`ulimit -n`)"
    )]
    Memory(#[source] io::Error),
    /// The operating system starts no more threads.
    #[error("cannot start a thread for sandboxes: check the limit on processes (`ulimit -u`)")]
    Thread(#[source] io::Error),
}

/// Reasons for refusing a module. The functions are then loaded from their sources again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// Its seal was not made with this key.
    #[error("its seal is not valid: it was changed, or written with another key")]
    Unauthentic,
    /// It was made for another guest.
    #[error("it was made for another guest, by another version of Airlock")]
    OtherGuest,
    /// It was made from other sources or limits than expected.
    #[error("it was made from other sources or with other limits")]
    OtherFunctions,
    /// It is longer, or needs more memory, than the limits allow.
    #[error("it has {bytes} bytes: must have at most {bytes_max}")]
    TooLarge {
        /// The actual size.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// It is not a valid module of this format.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
}
