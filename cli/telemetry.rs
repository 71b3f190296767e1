//! Metrics and health of commands that run on their own.

use std::sync::Arc;

use server::{
    error_response::ErrorFormat,
    serve::{HttpService, Listeners, Server},
    shutdown::Shutdown,
    system::OsRandom,
    telemetry::{self, Health, Metrics},
};

use crate::{settings::Settings, terminal::say};

/// Serves metrics and health, and says where.
pub(crate) async fn serve(
    settings: &Settings,
    metrics: Metrics,
    shutdown: &Shutdown,
    add_checks: impl FnOnce(&Health),
) -> anyhow::Result<()> {
    let health = Health::default();
    add_checks(&health);
    let stop = shutdown.requested.clone();
    let server = Server::new(settings.serve.clone(), Arc::new(OsRandom), stop);
    let listeners = Listeners::new().plain(&settings.telemetry.listen).await?;
    let router = telemetry::router(metrics, health);
    let service = HttpService::new("telemetry", router, ErrorFormat::GrpcGateway);
    let serving = server.start(service, listeners);
    let address = serving.addresses().first().map_or_else(String::new, ToString::to_string);
    say(format_args!("Metrics and health: http://{address}/metrics and http://{address}/readyz"))
}
