//! OAuth: clients, consents, codes and tokens.

pub(crate) mod authorize;
pub(crate) mod claims;
mod clients;
mod codes;
mod consents;
mod refresh;
mod rotation;
mod tokens;
