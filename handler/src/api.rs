//! The handler's interfaces: gRPC and REST over the same operations.

mod grpc;
pub mod operations;
mod rest;
mod wire;

use std::sync::Arc;

use server::telemetry::Health;

use self::operations::Operations;
use crate::metrics;

/// gRPC and REST on the same paths of one router.
pub fn router(operations: Arc<Operations>, health: &Health) -> Result<axum::Router, server::Error> {
    metrics::describe();
    let mut grpc = server::grpc::routes(health)?;
    grpc.add_service(grpc::ApplicationService::server(operations.clone()));
    grpc.add_service(grpc::DevAddrService::server(operations.clone()));
    grpc.add_service(grpc::StatusService::server(operations.clone()));
    grpc.add_service(grpc::JoinService::server(operations.clone()));
    Ok(rest::router(operations).merge(grpc.routes().into_axum_router()))
}
