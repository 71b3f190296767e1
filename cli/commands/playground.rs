//! `airlock playground`: serves the page that runs the sandbox in a browser, without account or network.

mod opened;

use std::{path::PathBuf, sync::Arc, time::Duration};

use axum::{
    extract::Request,
    http::StatusCode,
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
};
use clap::Args;
use server::{
    audit::AuditLog,
    error_response::ErrorFormat,
    serve::{HttpService, Listeners, Server},
    shutdown::Shutdown,
    system::{OsRandom, SystemClock},
    telemetry,
};

use self::opened::Opened;
use crate::{
    playground_page,
    settings::Settings,
    terminal::{say, warn},
};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  airlock playground\n  airlock playground vendor/acme/meter.js\n  airlock playground decoder.js --listen 127.0.0.1:9000"
)]
pub(crate) struct Playground {
    /// Codec to open, with its examples as `functions test` finds them
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Address to listen on
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8095")]
    listen: String,
}

/// Serves the page until a signal arrives.
pub(crate) async fn run(command: Playground, settings: Settings) -> anyhow::Result<()> {
    telemetry::start_logs(&settings.telemetry, AuditLog::without_file(Arc::new(SystemClock)).layer())?;
    let shutdown = Shutdown::on_signals()?;
    let opened = match command.file {
        Some(file) => Some(Opened::read(&file, &settings.sandbox)?),
        None => None,
    };
    let listeners = Listeners::new().plain(&command.listen).await?;
    let is_local = listeners.addresses().iter().all(|address| address.ip().is_loopback());
    let mut router = playground_page::router("", &settings.sandbox.limits, opened.as_ref())?;
    match is_local {
        true => router = router.layer(from_fn(refuse_other_hosts)),
        false => warn("Whoever reaches this address can read the file that is opened")?,
    }
    let server = Server::new(settings.serve.clone(), Arc::new(OsRandom), shutdown.requested.clone());
    let serving = server.start(HttpService::new("playground", router, ErrorFormat::Account), listeners);
    let address = serving.addresses().first().map_or_else(String::new, ToString::to_string);
    say(format_args!("Playground: http://{address}/"))?;
    shutdown.requested.cancelled().await;
    _ = shutdown.drain(serving.finished(), Duration::from_millis(settings.serve.drain_timeout_ms)).await;
    say("Stopped")
}

/// Keeps web pages from reading the opened file, which they could if the name of their own host led here.
async fn refuse_other_hosts(request: Request, next: Next) -> Response {
    match codecs::names_this_machine(&request) {
        true => next.run(request).await,
        false => (StatusCode::FORBIDDEN, "open the address that `airlock playground` printed").into_response(),
    }
}
