#![doc = include_str!("../README.md")]

mod address;
mod announcement;
mod error;
mod grpc;
mod metadata;
mod metrics;
mod operations;
mod registry;
mod rest;
mod settings;

use std::sync::Arc;

use axum::{Router, http::Method};
use server::{audit::AuditLog, auth::Authenticator, serve::run_to_end, telemetry::Health};
use store::Store;
use types::Clock;

pub use self::{error::Error, settings::Settings};
use self::{operations::Operations, registry::Registry};

/// The largest body of a change: the limit of tonic, above that of REST.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The discovery service.
pub struct Discovery {
    operations: Arc<Operations>,
}

impl Discovery {
    /// Opens the service on `store`; `authenticator` verifies callers, `audit` records changes.
    pub fn open(
        settings: &Settings,
        store: Arc<dyn Store>,
        authenticator: Arc<Authenticator>,
        clock: Arc<dyn Clock>,
        audit: AuditLog,
    ) -> Self {
        metrics::describe();
        let registry = Registry::new(store);
        let issuers = settings.announce_issuers.clone();
        Self { operations: Arc::new(Operations::new(registry, authenticator, clock, audit, issuers)) }
    }

    /// Its APIs: gRPC, with health and reflection, and REST.
    pub fn router(&self, health: &Health) -> Result<Router, server::Error> {
        let mut grpc = server::grpc::routes(health)?;
        grpc.add_service(grpc::Service::server(Arc::clone(&self.operations)));
        let router = rest::router(Arc::clone(&self.operations)).merge(grpc.routes().into_axum_router());
        Ok(run_to_end(router, BODY_BYTES_MAX))
    }
}

/// Returns true if a request needs a credential: changes do, and everybody may look things up.
pub fn needs_credential(method: &Method, path: &str) -> bool {
    match path.strip_prefix("/discovery.Discovery/") {
        Some(call) => ["Announce", "AddMetadata", "DeleteMetadata"].contains(&call),
        None => !method.is_safe() && !path.starts_with("/grpc."),
    }
}
