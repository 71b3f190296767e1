//! What requests and answers have in common, whether programs or people send them.

pub(crate) mod base_url;
pub(crate) mod body;
pub(crate) mod cookie;
pub(crate) mod credentials;
pub(crate) mod paging;
pub(crate) mod path;
pub(crate) mod peer;
pub(crate) mod reply;
