//! `airlock bridge …`: decodes the traffic of a network that runs already.

mod chirpstack;
mod report;
mod shadow;

use std::sync::Arc;

use clap::Subcommand;
use server::{
    error_response::ErrorFormat,
    serve::{HttpService, Listeners, Server},
    shutdown::Shutdown,
    system::OsRandom,
    telemetry::{self, Health, Metrics},
};

use self::chirpstack::ChirpStack;
use crate::{settings::Settings, terminal::say};

#[derive(Debug, Subcommand)]
pub(crate) enum Bridge {
    /// Decode the events of a ChirpStack 4 server, with the codecs of its device profiles
    ///
    /// Applications receive the same topics and JSON as from ChirpStack, with `object` filled in. Codecs, variables and
    /// tags come from ChirpStack's API. Everything else is a setting in `[bridge.chirpstack]`.
    #[command(name = "chirpstack")]
    ChirpStack(ChirpStack),
}

pub(crate) async fn run(command: Bridge, settings: Settings) -> anyhow::Result<()> {
    match command {
        Bridge::ChirpStack(command) => chirpstack::run(command, settings).await,
    }
}

/// Serves metrics and health, and says where.
async fn serve_telemetry(
    settings: &Settings,
    metrics: Metrics,
    shutdown: &Shutdown,
    add_checks: impl FnOnce(&Health),
) -> anyhow::Result<()> {
    let health = Health::default();
    add_checks(&health);
    let stop = shutdown.requested.clone();
    let server = Server { settings: settings.serve.clone(), random: Arc::new(OsRandom), stop };
    let listeners = Listeners::new().plain(&settings.telemetry.listen).await?;
    let router = telemetry::router(metrics, health);
    let service = HttpService::new("telemetry", router, ErrorFormat::GrpcGateway);
    let serving = server.start(service, listeners);
    let address = serving.addresses().first().map_or_else(String::new, ToString::to_string);
    say(format_args!("Metrics and health: http://{address}/metrics and http://{address}/readyz"))
}
