#![doc = include_str!("../README.md")]

pub mod access;
pub mod announcement;
pub mod api;
pub mod application;
mod concurrency_limit;
pub mod device;
pub mod downlink;
pub mod error;
pub mod join;
mod metrics;
pub mod output;
pub mod payload;
pub mod sealer;
mod settings;
pub mod status;
pub mod uplink;

use std::sync::Arc;

use self::api::{grpc, operations::Operations, rest};
pub use error::Error;
use server::telemetry::Health;
pub use settings::{Loading, Settings};

/// The handler's interfaces: gRPC and REST on the same paths of one router.
pub fn router(operations: Arc<Operations>, health: &Health) -> Result<axum::Router, server::Error> {
    metrics::describe();
    let mut grpc = server::grpc::routes(health)?;
    grpc.add_service(grpc::Service::server(operations.clone()));
    grpc.add_service(grpc::Addresses::server(operations.clone()));
    grpc.add_service(grpc::Figures::server(operations.clone()));
    grpc.add_service(grpc::Joins::server(operations.clone()));
    Ok(rest::router(operations).merge(grpc.routes().into_axum_router()))
}
