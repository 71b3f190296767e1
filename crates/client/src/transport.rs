//! Calls to services over gRPC and HTTP, and their retries.

pub(crate) mod grpc;
pub(crate) mod http;
pub(crate) mod retry;

pub use self::http::COMPONENT_HEADER;

/// The part of a URL after its credentials, for people and files. It needs no valid URL.
pub fn without_credentials(url: &str) -> &str {
    url.rsplit_once('@').map_or(url, |(_, address)| address)
}
