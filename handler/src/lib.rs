#![doc = include_str!("../README.md")]

pub mod access;
pub mod address;
pub mod announce;
pub mod application;
mod body;
mod cayenne;
mod config;
pub mod device;
pub mod downlink;
mod error;
pub mod fault;
pub mod frame;
mod grpc;
pub mod join;
mod loaded;
mod metrics;
pub mod operations;
pub mod outline;
pub mod output;
pub mod payload;
pub mod rates;
mod rest;
mod share;
pub mod status;
pub mod throttle;
pub mod uplink;
pub mod vault;

use std::sync::Arc;

pub use config::{Loading, Settings};
pub use error::Error;
use operations::Operations;
use server::telemetry::Health;

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
