//! The handler's interfaces: gRPC and REST over the same operations.

mod grpc;
pub mod operations;
mod rest;
mod wire;

use std::sync::Arc;

use axum::http::Method;
use server::telemetry::Health;

use self::operations::Operations;
pub use self::wire::history::{WholeRecord, record_query, whole_record_message};
use crate::status::metrics;

/// gRPC and REST on the same paths of one router.
pub fn router(operations: Arc<Operations>, health: &Health) -> Result<axum::Router, server::Error> {
    metrics::describe();
    let mut services = server::grpc::routes(health)?;
    grpc::add_services(&mut services, operations.clone());
    Ok(rest::router(operations).merge(services.routes().into_axum_router()))
}

/// Returns true if a request needs a credential: all but health checks, reflection, and the prefixes of device
/// addresses.
pub fn needs_credential(_method: &Method, path: &str) -> bool {
    !["/grpc.", "/lorawan."].iter().any(|package| path.starts_with(package))
}

/// Returns true if a request over HTTP takes a body of any length, which is read while it is answered.
pub fn is_stream(method: &Method, path: &str) -> bool {
    method == Method::POST && rest::is_stream(path)
}
