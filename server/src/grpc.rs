//! Health and reflection, which every gRPC listener serves.

use std::time::Duration;

use futures::stream::Empty;
use tokio::{sync::Mutex, time::Instant};
use tonic::{
    Request, Response, Status,
    service::{Routes, RoutesBuilder},
};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus, health_server};
use tonic_reflection::server::Builder;

use crate::{Error, telemetry::Health};

/// How long the result of the health checks is cached.
const CHECKS_AGE_MAX: Duration = Duration::from_secs(1);

/// Routes with health and reflection (v1 and v1alpha); add the services, then call `routes().into_axum_router()`.
pub fn routes(health: &Health) -> Result<RoutesBuilder, Error> {
    let mut routes = Routes::builder();
    routes.add_service(health_server::HealthServer::new(Checks::new(health)));
    routes.add_service(reflection().build_v1()?);
    routes.add_service(reflection().build_v1alpha()?);
    Ok(routes)
}

fn reflection() -> Builder<'static> {
    Builder::configure()
        .register_encoded_file_descriptor_set(api::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

/// The checks behind `/readyz`, over gRPC. All services of a process share the result.
///
/// Anybody may ask, so the result is cached and the checks run only once at a time.
struct Checks {
    health: Health,
    last: Mutex<Option<(Instant, bool)>>,
}

impl Checks {
    fn new(health: &Health) -> Self {
        Self { health: health.clone(), last: Mutex::default() }
    }

    async fn are_well(&self) -> bool {
        let mut last = self.last.lock().await;
        match *last {
            Some((asked, well)) if asked.elapsed() < CHECKS_AGE_MAX => well,
            _ => {
                let well = self.health.report().await.is_ready();
                *last = Some((Instant::now(), well));
                well
            }
        }
    }
}

#[tonic::async_trait]
impl health_server::Health for Checks {
    type WatchStream = Empty<Result<HealthCheckResponse, Status>>;

    async fn check(&self, _: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        let ready = !self.health.is_draining() && self.are_well().await;
        let status = if ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        Ok(Response::new(HealthCheckResponse { status: status.into() }))
    }

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("watching is not supported: call Check now and then"))
    }
}
