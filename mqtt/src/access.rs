//! Authentication of clients, and the topics that they may use.

pub(crate) mod authenticator;
pub(crate) mod permissions;
