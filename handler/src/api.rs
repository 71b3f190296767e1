//! The handler's interfaces: gRPC and REST over the same operations.

pub(crate) mod grpc;
pub mod operations;
pub(crate) mod rest;
pub(crate) mod wire;
