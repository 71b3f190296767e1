//! `airlock bridge chirpstack`.

use std::{path::PathBuf, sync::Arc, time::Duration};

use bridge::chirpstack::{Bridge, ChirpStackSettings, Environment};
use clap::Args;
use runtime::{Engine, Pool};
use server::{
    audit::AuditLog,
    error_response::ErrorFormat,
    serve::{HttpService, Listeners, Server},
    shutdown::{Drained, Shutdown},
    system::{OsRandom, SystemClock},
    telemetry::{self, Health, Metrics},
};

use crate::{settings::Settings, terminal::say};

#[derive(Debug, Args)]
pub(crate) struct ChirpStack {
    /// Broker on which ChirpStack publishes events, such as mqtt://localhost:1883, or mqtts:// for TLS
    #[arg(long, value_name = "URL")]
    mqtt: Option<String>,
    /// User name for that broker
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// File with the password for that broker
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// ChirpStack's API, such as http://localhost:8080
    #[arg(long, value_name = "URL")]
    grpc: Option<String>,
    /// File with an API key of ChirpStack, global or of a tenant
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Broker on which decoded events are published [default: the same, with topics that start with `airlock/`]
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// What precedes the topics of decoded events
    #[arg(long, value_name = "TEXT")]
    to_prefix: Option<String>,
}

/// Runs the bridge until a signal arrives.
pub(crate) async fn run(command: ChirpStack, settings: Settings) -> anyhow::Result<()> {
    let bridge_settings = command.over(settings.bridge.chirpstack.clone());
    let audit = AuditLog::without_file(Arc::new(SystemClock));
    telemetry::start_logs(&settings.telemetry, audit.layer())?;
    let shutdown = Shutdown::on_signals()?;
    let metrics = Metrics::install(shutdown.requested.clone())?;
    let started = tokio::select! {
        started = start(&settings, &bridge_settings) => started?,
        () = shutdown.requested.cancelled() => return say("Stopped before it was ready"),
    };
    let health = Health::default();
    started.report_to(&health);
    let server =
        Server { settings: settings.serve.clone(), random: Arc::new(OsRandom), stop: shutdown.requested.clone() };
    let listeners = Listeners::new().plain(&settings.telemetry.listen).await?;
    let router = telemetry::router(metrics, health);
    let serving =
        server.start(HttpService { name: "telemetry", router, error_format: ErrorFormat::GrpcGateway }, listeners);
    let telemetry = serving.addresses().first().map_or_else(String::new, ToString::to_string);
    say(format_args!("Metrics and health: http://{telemetry}/metrics and http://{telemetry}/readyz"))?;
    tokio::select! {
        () = started.ready() => say(ready_text(&bridge_settings, started.prefix()))?,
        () = shutdown.requested.cancelled() => {}
    }
    shutdown.requested.cancelled().await;
    let drain = Duration::from_millis(settings.serve.drain_timeout_ms);
    match shutdown.drain(started.stop(), drain).await {
        Drained::Finished => say("Stopped"),
        Drained::TimedOut | Drained::Forced => {
            say("Stopped before all messages were published: the broker keeps the others for the next start")
        }
    }
}

async fn start(settings: &Settings, bridge_settings: &ChirpStackSettings) -> anyhow::Result<Bridge> {
    let sandbox = settings.sandbox.clone();
    // Compiling the guest takes seconds on the first start.
    let engine = tokio::task::spawn_blocking(move || Engine::new(&sandbox)).await??;
    let environment = Environment {
        pool: Arc::new(Pool::start(Arc::new(engine))?),
        clock: Arc::new(SystemClock),
        random: Arc::new(OsRandom),
        state_dir: settings.data_dir.join("bridge").join("chirpstack"),
    };
    Ok(Bridge::start(bridge_settings, environment).await?)
}

fn ready_text(settings: &ChirpStackSettings, prefix: &str) -> String {
    let to = if settings.to.url.is_empty() { &settings.mqtt.url } else { &settings.to.url };
    format!(
        "Decoding the events of {}.\nThey are published at {to} as {prefix}application/ID/device/EUI/event/up.\n\
         Press Ctrl-C to stop.",
        settings.mqtt.url
    )
}

impl ChirpStack {
    /// The settings with these flags, which win.
    fn over(self, mut settings: ChirpStackSettings) -> ChirpStackSettings {
        let ChirpStackSettings { mqtt, grpc, to, to_prefix, .. } = &mut settings;
        mqtt.url = self.mqtt.unwrap_or(std::mem::take(&mut mqtt.url));
        mqtt.username = self.user.or(mqtt.username.take());
        mqtt.password_file = self.password_file.or(mqtt.password_file.take());
        grpc.url = self.grpc.unwrap_or(std::mem::take(&mut grpc.url));
        grpc.token_file = self.token_file.or(grpc.token_file.take());
        to.url = self.to.unwrap_or(std::mem::take(&mut to.url));
        *to_prefix = self.to_prefix.or(to_prefix.take());
        settings
    }
}
