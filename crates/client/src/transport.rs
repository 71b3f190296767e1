//! Calls to services over gRPC and HTTP: their retries, and the certificates that they trust.

pub(crate) mod grpc;
pub(crate) mod http;
pub(crate) mod retry;
mod trust;

pub use self::{
    http::COMPONENT_HEADER,
    trust::{ClientIdentity, Trust},
};

/// The part of a URL after its credentials, for people and files. It needs no valid URL.
pub fn without_credentials(url: &str) -> &str {
    url.rsplit_once('@').map_or(url, |(_, address)| address)
}
