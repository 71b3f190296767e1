//! Extractors and responses that the API and the site share.

pub(crate) mod base_url;
pub(crate) mod body;
pub(crate) mod cookie;
pub(crate) mod credentials;
pub(crate) mod error;
pub(crate) mod paging;
pub(crate) mod path;
pub(crate) mod peer;
