//! Lifetimes of tokens.

/// The lifetime of tokens of users and access keys, in seconds.
pub(crate) const TOKEN_SECONDS: u64 = 3600;
/// The lifetime of tokens of gateways and components, in seconds: 93 days. No token lives longer.
pub(crate) const MACHINE_SECONDS: u64 = 93 * 24 * 3600;
