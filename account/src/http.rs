//! The HTTP API and the account site, with the extractors and responses that they share.

pub(crate) mod base_url;
pub(crate) mod body;
pub(crate) mod cookie;
pub(crate) mod credentials;
pub(crate) mod error;
pub(crate) mod local_path;
pub(crate) mod openapi;
pub(crate) mod paging;
pub(crate) mod path;
pub(crate) mod peer;
mod rest;
mod site;
