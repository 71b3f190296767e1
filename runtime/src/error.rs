//! Why an engine or its workers cannot start.

use std::io;
use std::path::PathBuf;

/// Why functions cannot be run at all. A function that fails is a [`crate::Failure`], not one of these.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The built-in guest is not what this host was made for.
    #[error("the built-in guest cannot be used: {0}; rebuild it with runtime/guest/build.sh")]
    Guest(String),
    /// A setting asks for what cannot be done.
    #[error("the sandbox cannot be set up like this: {0}")]
    Settings(&'static str),
    /// Wasmtime refused its configuration or the guest.
    #[error("failed to compile the built-in guest for this processor")]
    Compile(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The system gave no room for sandboxes.
    #[error("failed to map memory for a sandbox; check the limits on virtual memory (`ulimit -v`) and open files")]
    Memory(#[source] io::Error),
    /// The system gave no threads.
    #[error("failed to start a thread for sandboxes; check the limit on processes (`ulimit -u`)")]
    Thread(#[source] io::Error),
    /// The folder for the compiled guest cannot be written.
    #[error("failed to keep the compiled guest in {}; check the folder's owner and free space", path.display())]
    Cache {
        /// The file that could not be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a kept function set was refused. It is loaded anew from its texts then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// Its seal is not one of this key: it was changed, or written by somebody else.
    #[error("its authentication failed: it was changed, or was not written with this key")]
    Unauthentic,
    /// It goes over the memory of another guest.
    #[error("it does not fit this guest: another version wrote it")]
    OtherGuest,
    /// It is of other texts or limits than it was asked for.
    #[error("it holds other functions than its name says")]
    OtherFunctions,
    /// It is longer, or needs more memory, than its limits allow.
    #[error("it takes {bytes} bytes, {bytes_max} are allowed")]
    TooLarge {
        /// What it takes.
        bytes: usize,
        /// What it may take.
        bytes_max: usize,
    },
    /// It is not a module as they are written here.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
}
