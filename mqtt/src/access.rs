//! Who clients are, and what they may subscribe to and publish to.

pub(crate) mod authenticator;
pub(crate) mod permissions;
