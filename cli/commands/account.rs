//! `airlock account …`: manages the account service directly in the server's store.
//!
//! Changes are written to the audit file as they are by the running service, and to standard error in place of its log.
//! Other log messages appear from the level of warnings.

pub(crate) mod args;
mod clients;
mod components;
mod keys;
mod users;

use std::sync::Arc;

use server::{audit::AuditLog, system::SystemClock, telemetry};

use self::args::Account as Command;
use crate::{serve::open_account, settings::Settings};

pub(crate) async fn run(command: Command, settings: Settings) -> anyhow::Result<()> {
    let audit = AuditLog::open(&settings.telemetry, Arc::new(SystemClock))?;
    let level = "warn,audit=info".to_owned();
    telemetry::start_logs(&telemetry::TelemetrySettings { level, ..settings.telemetry.clone() }, audit.layer())?;
    let (account, mark) = open_account(settings, audit).await?;
    let done = match command {
        Command::Users { command } => users::run(command, &account).await,
        Command::Clients { command } => clients::run(command, &account).await,
        Command::Components { command } => components::run(command, &account).await,
        Command::Keys { command } => keys::run(command, &account).await,
    };
    if let Some(mark) = mark {
        mark.advance().await?;
    }
    done
}

/// How to list the rest, when a page is full.
fn next_page(command: &str, listed: usize, last: &str) -> Option<String> {
    (listed >= account::LISTED_MAX).then(|| format!("There may be more: airlock account {command} --after {last}"))
}
