//! Pages on which people let programs act for them.

pub(in crate::site) mod code;
pub(in crate::site) mod consent;
