//! Calls to services over gRPC and HTTP: their retries, and the certificates that they trust.

pub(crate) mod grpc;
pub(crate) mod http;
pub(crate) mod retry;
mod trust;

pub use self::{
    http::COMPONENT_HEADER,
    trust::{ClientIdentity, Trust},
};
