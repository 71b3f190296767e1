//! `airlock account …`: what an operator does on the server's own store, without a network.
//!
//! What was done goes to the audit file as it does when the services run, and to standard error, as to their log. The rest
//! of a log would only be in the way of the answer, so nothing else below a warning is shown.

pub(crate) mod args;
mod clients;
mod components;
mod keys;
mod users;

use server::telemetry;

use self::args::Account as Command;
use crate::{serve::open_account, settings::Settings};

/// Runs one of the commands.
pub(crate) async fn run(command: Command, settings: Settings) -> anyhow::Result<()> {
    telemetry::start_logs(&telemetry::Settings { level: "warn,audit=info".to_owned(), ..settings.telemetry.clone() })?;
    let account = open_account(settings).await?;
    match command {
        Command::Users { command } => users::run(command, &account).await,
        Command::Clients { command } => clients::run(command, &account).await,
        Command::Components { command } => components::run(command, &account).await,
        Command::Keys { command } => keys::run(command, &account).await,
    }
}

/// What to type for those that did not fit into a list.
fn more(command: &str, listed: usize, last: &str) -> Option<String> {
    (listed >= account::LISTED_MAX).then(|| format!("There may be more: airlock account {command} --after {last}"))
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}
