//! Consent to programs, and the code for command lines.

pub(in crate::site) mod code;
pub(in crate::site) mod consent;
