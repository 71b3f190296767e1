//! The consent page, and the page with an authorization code for programs without a browser.

pub(in crate::http::site) mod code;
pub(in crate::http::site) mod consent;
