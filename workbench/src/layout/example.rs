//! Notations of examples, common to all layouts.

pub(super) mod driver;
pub(super) mod literal;
pub(super) mod message;
pub(super) mod unknown_members;
