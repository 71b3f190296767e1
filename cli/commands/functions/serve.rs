//! `airlock functions serve`.

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::Args;
use server::{
    audit::AuditLog,
    serve::Server,
    shutdown::Shutdown,
    system::{OsRandom, SystemClock},
    telemetry::{self, Metrics},
};
use workbench::counted;

use crate::{
    services::{
        codec_service::{self, Environment},
        telemetry::{self as own_telemetry, Process},
    },
    settings::Settings,
    terminal::say,
    version,
};

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Directory of codecs, each in a file NAME.js [default: the setting `codecs.dir`]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Address to listen on [default: 127.0.0.1:8090]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// File with a key that every request must bring; with it, codecs can also be changed over HTTP
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

/// Serves codecs until a signal arrives.
pub(crate) async fn run(command: Serve, mut settings: Settings) -> anyhow::Result<()> {
    command.set(&mut settings.codecs);
    let clock = Arc::new(SystemClock);
    telemetry::start_logs(&settings.telemetry, AuditLog::without_file(clock.clone()).layer())?;
    let shutdown = Shutdown::on_signals()?;
    let metrics = Metrics::install(shutdown.requested.clone())?;
    version::report(&metrics);
    let random = Arc::new(OsRandom);
    let stop = shutdown.requested.clone();
    let server = Server::new(settings.serve.clone(), random.clone(), stop);
    let environment = Environment { server: &server, clock, random };
    let (serving, codecs) = tokio::select! {
        started = codec_service::start(&settings, environment) => started?,
        () = shutdown.requested.cancelled() => return say("Stopped before it was ready"),
    };
    own_telemetry::serve(&settings, Process::Codecs, metrics, &shutdown, |health| codecs.report_to(health)).await?;
    let address = serving.addresses().first().map_or_else(String::new, ToString::to_string);
    say(format_args!("{}: http://{address}/codecs", counted(codecs.count(), "codec")))?;
    shutdown.requested.cancelled().await;
    let drain = Duration::from_millis(settings.serve.drain_timeout_ms);
    _ = shutdown.drain(serving.finished(), drain).await;
    say("Stopped")
}

impl Serve {
    /// Overrides the settings by what was given.
    fn set(self, settings: &mut codecs::Settings) {
        if self.dir.is_some() {
            settings.dir = self.dir;
        }
        if let Some(listen) = self.listen {
            settings.listen = listen;
        }
        if self.key_file.is_some() {
            settings.key_file = self.key_file;
        }
    }
}
