//! How examples are written, in whatever layout.

pub(super) mod driver;
pub(super) mod literal;
pub(super) mod message;
pub(super) mod unknown_members;
