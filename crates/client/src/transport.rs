//! Calls to services over gRPC and HTTP: their retries, and the certificates that they trust; sockets to brokers.

pub(crate) mod grpc;
pub(crate) mod http;
pub(crate) mod retry;
mod socket;
mod trust;

pub use self::{
    http::COMPONENT_HEADER,
    socket::{Socket, connect_socket},
    trust::{ClientIdentity, Trust},
};

/// The part of a URL after its credentials, for people and files. It needs no valid URL.
pub fn without_credentials(url: &str) -> &str {
    url.rsplit_once('@').map_or(url, |(_, address)| address)
}
