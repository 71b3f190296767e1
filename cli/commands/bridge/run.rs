//! Runs a bridge until a signal arrives.

use std::{sync::Arc, time::Duration};

use bridge::{Environment, Error, Running};
use chirpstack::{ChirpStackBridge, ChirpStackSettings};
use server::{
    audit::AuditLog,
    error_response::ErrorFormat,
    serve::{HttpService, Listeners, Server, ServerHandle},
    shutdown::{Drained, Shutdown},
    system::{OsRandom, SystemClock},
    telemetry::{self, Metrics},
};
use things_stack::{ThingsStackBridge, WebhookListener, webhook_router};

use super::{
    network::Network,
    shadow::{self, Reporting},
};
use crate::{
    services::{pool, telemetry as own_telemetry},
    settings::Settings,
    terminal::say,
    version,
};

/// A running bridge.
struct Bridge {
    running: Box<dyn Running>,
    /// Prefix of the topics of decoded messages.
    prefix: String,
    /// Listener for messages as a webhook.
    webhook: Option<WebhookListener>,
}

/// Publishes decoded messages, or compares them for a report.
pub(super) async fn until_stopped(
    network: Network,
    reporting: Option<Reporting>,
    settings: Settings,
) -> anyhow::Result<()> {
    let shutdown = start_process(&settings)?;
    let metrics = Metrics::install(shutdown.requested.clone())?;
    version::report(&metrics);
    let suffix = if reporting.is_some() { "-shadow" } else { "" };
    let directory = format!("{}{suffix}", network.directory());
    let environment = tokio::select! {
        environment = environment(&settings, &directory) => environment?,
        () = shutdown.requested.cancelled() => return say("Stopped before it was ready"),
    };
    match reporting {
        Some(reporting) => shadow::run(&reporting, &network, (&settings, environment), &shutdown, metrics).await,
        None => publish(&network, (&settings, environment), &shutdown, metrics).await,
    }
}

/// Ends the sessions of a bridge that is removed.
pub(super) async fn leave(chirpstack: ChirpStackSettings, settings: &Settings) -> anyhow::Result<()> {
    let shutdown = start_process(settings)?;
    let left = async {
        let directory = Network::ChirpStack(Box::new(chirpstack.clone())).directory();
        let environment = environment(settings, directory).await?;
        anyhow::Ok(ChirpStackBridge::leave(&chirpstack, environment).await?)
    };
    tokio::select! {
        left = left => left.and_then(|()| say("Left: no broker keeps events for this bridge any more")),
        () = shutdown.requested.cancelled() => say("Stopped before it had left: run it again"),
    }
}

/// Publishes decoded messages.
async fn publish(
    network: &Network,
    (settings, environment): (&Settings, Environment),
    shutdown: &Shutdown,
    metrics: Metrics,
) -> anyhow::Result<()> {
    let Bridge { running, prefix, webhook } = tokio::select! {
        started = Bridge::start(network, environment) => started?,
        () = shutdown.requested.cancelled() => return say("Stopped before it was ready"),
    };
    own_telemetry::serve(settings, network.bridge(), metrics, shutdown, |health| running.report_to(health)).await?;
    let webhook = serve_webhook(webhook, settings, shutdown).await?;
    tokio::select! {
        () = running.ready() => say(network.ready_text(&prefix))?,
        () = shutdown.requested.cancelled() => {}
    }
    shutdown.requested.cancelled().await;
    let drain = Duration::from_millis(settings.serve.drain_timeout_ms);
    let stopped = async {
        if let Some(webhook) = webhook {
            webhook.finished().await;
        }
        running.stop().await;
    };
    match shutdown.drain(stopped, drain).await {
        Drained::Finished => say("Stopped"),
        Drained::TimedOut | Drained::Forced => {
            say(format_args!("Stopped before all messages were published: {}", network.unpublished_text()))
        }
    }
}

/// Receives the requests of webhooks, if that is wanted, and says where.
async fn serve_webhook(
    webhook: Option<WebhookListener>,
    settings: &Settings,
    shutdown: &Shutdown,
) -> anyhow::Result<Option<ServerHandle>> {
    let Some(webhook) = webhook else { return Ok(None) };
    let stop = shutdown.requested.clone();
    let server = Server::new(settings.serve.clone(), Arc::new(OsRandom), stop);
    let listeners = Listeners::new().plain(&webhook.listen).await?;
    let router = webhook_router(&[webhook]);
    let serving = server.start(HttpService::new("webhook", router, ErrorFormat::Account), listeners);
    let address = serving.addresses().first().map_or_else(String::new, ToString::to_string);
    say(format_args!("Webhook: http://{address}/"))?;
    Ok(Some(serving))
}

/// Starts logging, and catching signals.
fn start_process(settings: &Settings) -> anyhow::Result<Shutdown> {
    let audit = AuditLog::without_file(Arc::new(SystemClock));
    telemetry::start_logs(&settings.telemetry, audit.layer())?;
    Ok(Shutdown::on_signals()?)
}

/// Returns the resources of a bridge, which keeps what it imports and records in `directory`. Starts its sandboxes.
async fn environment(settings: &Settings, directory: &str) -> anyhow::Result<Environment> {
    Ok(Environment {
        pool: Arc::new(pool::start("bridge", &settings.sandbox).await?),
        clock: Arc::new(SystemClock),
        random: Arc::new(OsRandom),
        state_dir: settings.data_dir.join("bridge").join(directory),
        history: Some(settings.history.clone()),
    })
}

impl Bridge {
    async fn start(network: &Network, environment: Environment) -> Result<Self, Error> {
        Ok(match network {
            Network::ChirpStack(settings) => {
                let bridge = ChirpStackBridge::start(settings, environment).await?;
                Self { prefix: bridge.prefix().to_owned(), webhook: None, running: Box::new(bridge) }
            }
            Network::ThingsStack(settings) => {
                let bridge = ThingsStackBridge::start(settings, environment).await?;
                let webhook = bridge.webhook().cloned();
                Self { prefix: bridge.prefix().to_owned(), webhook, running: Box::new(bridge) }
            }
        })
    }
}
