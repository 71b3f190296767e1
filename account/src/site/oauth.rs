//! The consent page, and the page with an authorization code for programs without a browser.

pub(in crate::site) mod code;
pub(in crate::site) mod consent;
