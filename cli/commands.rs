//! The commands, one module per noun.

pub(crate) mod account;
pub(crate) mod applications;
pub(crate) mod bridge;
pub(crate) mod demo;
pub(crate) mod devices;
pub(crate) mod downlink;
pub(crate) mod functions;
pub(crate) mod gateways;
pub(crate) mod handler;
pub(crate) mod subscribe;
pub(crate) mod user;
pub(crate) mod webhooks;

use std::sync::Arc;

use server::{audit::AuditLog, system::SystemClock, telemetry};

use crate::settings::Settings;

/// Starts the logs of a command that works on the server's store: its changes are written to the audit file as they are
/// by the running service, and to standard error in place of its log; other messages from the level of warnings.
fn operator_audit(settings: &Settings) -> anyhow::Result<AuditLog> {
    let audit = AuditLog::open(&settings.telemetry, Arc::new(SystemClock))?;
    let level = "warn,audit=info".to_owned();
    telemetry::start_logs(&telemetry::TelemetrySettings { level, ..settings.telemetry.clone() }, audit.layer())?;
    Ok(audit)
}

/// The value of a pair of flags that exclude each other; `None` if neither is given.
fn flag(on: bool, off: bool) -> Option<bool> {
    (on || off).then_some(on)
}

fn yes_no(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}
