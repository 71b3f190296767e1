//! Secrets: the files that hold keys, and the seal of those in the store.

pub mod identity;
pub mod private_file;
pub mod seal;
pub mod tls;
