//! The commands, one module per noun.

pub(crate) mod account;
pub(crate) mod applications;
pub(crate) mod backup;
pub(crate) mod bridge;
pub(crate) mod demo;
pub(crate) mod devices;
pub(crate) mod downlink;
pub(crate) mod functions;
pub(crate) mod gateways;
pub(crate) mod handler;
pub(crate) mod history;
pub(crate) mod load;
pub(crate) mod playground;
pub(crate) mod replay;
pub(crate) mod shell;
pub(crate) mod subscribe;
pub(crate) mod user;
pub(crate) mod webhooks;

use std::sync::Arc;

use api::rest::account::Collaborator;
use server::{audit::AuditLog, system::SystemClock, telemetry};

use crate::{
    output::{Cell, Table},
    settings::Settings,
};

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

/// Rights as a list in a cell.
fn rights<R: Copy + Into<&'static str>>(rights: &[R]) -> Cell {
    Cell::list(&rights.iter().map(|right| (*right).into()).collect::<Vec<&str>>(), ", ")
}

fn join_rights<R: Copy + Into<&'static str>>(rights: &[R]) -> String {
    rights.iter().map(|right| (*right).into()).collect::<Vec<_>>().join(", ")
}

fn collaborators_table<R: Copy + Into<&'static str>>(people: Vec<Collaborator<R>>) -> Table {
    let row = |person: Collaborator<R>| [person.username.to_string().into(), rights(&person.rights)];
    Table::new([("username", "Collaborator"), ("rights", "Rights")], people.into_iter().map(row))
}
