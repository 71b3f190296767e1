//! Logs: text on a terminal, JSON otherwise.

use std::io::{IsTerminal, stderr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing_subscriber::{EnvFilter, Layer, Registry, layer::SubscriberExt, util::SubscriberInitExt};

use super::TelemetrySettings;
use crate::Error;

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// One line of text.
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging to the standard error and to `audit`, the layer for security events; once per process.
pub fn start_logs(settings: &TelemetrySettings, audit: impl Layer<Registry> + Send + Sync) -> Result<(), Error> {
    let filter = settings.level.parse::<EnvFilter>().map_err(|error| {
        let allowed = "error, warn, info, debug or trace, such as `info,airlock_handler=debug`";
        Error::Setting(format!("log level `{}` not valid: {error}; allowed are {allowed}", settings.level))
    })?;
    let lines = tracing_subscriber::fmt::layer().with_writer(stderr);
    let terminal = stderr().is_terminal();
    let lines = match settings.format {
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
        LogFormat::Auto if !terminal => lines.json().flatten_event(true).boxed(),
        LogFormat::Text | LogFormat::Auto => lines.with_ansi(terminal).with_target(false).boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(audit).with(lines.with_filter(filter));
    subscriber.try_init().map_err(|_| Error::Telemetry { what: "logs" })
}
