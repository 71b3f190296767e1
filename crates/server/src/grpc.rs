//! The gRPC services that every listener has, health and reflection, and code that the calls of all services share.

use std::time::Duration;

use axum::http::HeaderMap;
use futures::stream::Empty;

use tokio::{sync::Mutex, time::Instant};
use tonic::{
    Request, Response, Status,
    metadata::MetadataMap,
    service::{Routes, RoutesBuilder},
};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus, health_server};
use tonic_reflection::server::Builder;

use crate::{Error, auth::Caller, error::status::to_status, telemetry::Health};

/// Time for which a result of the readiness checks is reused.
const RESULT_AGE_MAX: Duration = Duration::from_secs(1);

/// Routes for health and reflection (v1 and v1alpha); add the services, then call `routes().into_axum_router()`.
pub fn routes(health: &Health) -> Result<RoutesBuilder, Error> {
    let mut routes = Routes::builder();
    routes.add_service(health_server::HealthServer::new(Readiness::new(health)));
    routes.add_service(reflection().build_v1()?);
    routes.add_service(reflection().build_v1alpha()?);
    Ok(routes)
}

/// Splits a request into the caller and the message.
pub fn split<T>(request: Request<T>) -> Result<(Caller, T), Status> {
    let (metadata, extensions, message) = request.into_parts();
    let caller = Caller::of(&metadata.into_headers(), &extensions).map_err(|error| to_status(&error))?;
    Ok((caller, message))
}

/// A number in the metadata; zero if it is missing. `refuse` makes the error from the name and the rule.
pub fn number<E>(
    metadata: &MetadataMap,
    name: &'static str,
    refuse: impl FnOnce(&'static str, &'static str) -> E,
) -> Result<usize, E> {
    let Some(value) = metadata.get(name) else { return Ok(0) };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| refuse(name, "must be a whole number from 0 up"))
}

/// Like [`number`], for a header of an HTTP request, as a gRPC gateway maps it: `Grpc-Metadata-Limit`.
pub fn number_in_header<E>(
    headers: &HeaderMap,
    name: &'static str,
    refuse: impl FnOnce(&'static str, &'static str) -> E,
) -> Result<usize, E> {
    let Some(value) = headers.get(format!("grpc-metadata-{name}")) else { return Ok(0) };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| refuse(name, "must be a whole number from 0 up"))
}

fn reflection() -> Builder<'static> {
    Builder::configure()
        .register_encoded_file_descriptor_set(api::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

/// Serves the checks behind `/readyz` over gRPC. They are those of the process, whichever service is asked about.
///
/// Anybody may call this, so results are reused for a while, and the checks run once at a time.
struct Readiness {
    health: Health,
    last: Mutex<Option<(Instant, bool)>>,
}

impl Readiness {
    fn new(health: &Health) -> Self {
        Self { health: health.clone(), last: Mutex::default() }
    }

    async fn is_ready(&self) -> bool {
        let mut last = self.last.lock().await;
        match *last {
            Some((checked, is_ready)) if checked.elapsed() < RESULT_AGE_MAX => is_ready,
            _ => {
                let is_ready = self.health.report().await.is_ready();
                *last = Some((Instant::now(), is_ready));
                is_ready
            }
        }
    }
}

#[tonic::async_trait]
impl health_server::Health for Readiness {
    type WatchStream = Empty<Result<HealthCheckResponse, Status>>;

    async fn check(&self, _: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        let ready = !self.health.is_draining() && self.is_ready().await;
        let status = if ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        Ok(Response::new(HealthCheckResponse { status: status.into() }))
    }

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("watching is not supported: poll Check instead"))
    }
}
