//! Logs: text on a terminal, JSON otherwise, and security events in a file of their own.

use std::{
    fs::OpenOptions,
    io::{IsTerminal, stderr},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::Arc,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::{Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{
    EnvFilter, Layer, filter::Targets, layer::SubscriberExt, registry::LookupSpan, util::SubscriberInitExt,
};

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

/// The target of security events.
const AUDIT: &str = "audit";

/// Starts logging to the standard error; once per process.
pub fn start_logs(settings: &TelemetrySettings) -> Result<(), Error> {
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
    let audit = settings.audit_file.as_deref().map(audit_lines).transpose()?;
    let subscriber = tracing_subscriber::registry().with(lines.with_filter(filter)).with(audit);
    subscriber.try_init().map_err(|_| Error::Telemetry { what: "logs" })
}

/// Appends security events to a file, regardless of the log level.
///
/// JSON escapes line breaks, so no value can forge an entry, and each line is one write.
fn audit_lines<S: Subscriber + for<'a> LookupSpan<'a>>(path: &Path) -> Result<impl Layer<S>, Error> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    let failed = |error| Error::Setting(format!("audit file `{}` cannot be written: {error}", path.display()));
    let lines =
        tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(Arc::new(file.map_err(failed)?));
    Ok(lines.with_filter(Targets::new().with_target(AUDIT, LevelFilter::INFO)))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn the_audit_file_gets_one_line_per_security_event_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        for start in 1..=2 {
            let subscriber = tracing_subscriber::registry().with(audit_lines(&path).unwrap());
            tracing::subscriber::with_default(subscriber, || {
                tracing::info!("not an event");
                tracing::info!(target: "audit", event = "login", actor = "alice\n{\"forged\": true}", object = "site");
            });
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(text.lines().count(), start, "{text}");
            let line: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
            assert_eq!(line["actor"], "alice\n{\"forged\": true}");
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
