//! Code and first memory of sandboxes: the compiled guest, and loaded functions as modules.

mod atomic_file;
pub(crate) mod compiled_guest;
pub(crate) mod features;
pub(crate) mod guest;
pub(crate) mod module;
pub(crate) mod module_cache;
pub(crate) mod seal;
