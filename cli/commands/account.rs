//! `airlock account …`: manages the account service directly in the server's store.

pub(crate) mod args;
mod clients;
mod components;
mod keys;
mod usage;
mod users;

use self::args::Account as Command;
use super::operator_audit;
use crate::{output::Output, serve::open_account, settings::Settings};

pub(crate) async fn run(command: Command, settings: Settings, output: &Output) -> anyhow::Result<()> {
    let audit = operator_audit(&settings)?;
    let command = match command {
        Command::Usage { username } => return usage::run(username, (settings, audit), output).await,
        command => command,
    };
    let (account, mark) = open_account(settings, audit).await?;
    let done = match command {
        Command::Users { command } => users::run(command, &account, output).await,
        Command::Clients { command } => clients::run(command, &account, output).await,
        Command::Components { command } => components::run(command, &account, output).await,
        Command::Keys { command } => keys::run(command, &account, output).await,
        Command::Usage { .. } => Ok(()),
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
