//! The scripts of a directory: which of its files are some, and what belongs to them.

pub(super) mod about;
pub(super) mod alone;
pub(super) mod bundle;
pub(super) mod code;
pub(super) mod entry;
