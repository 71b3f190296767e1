//! `airlock account …`: manages the account service directly in the server's store.

pub(crate) mod args;
mod clients;
mod components;
mod keys;
mod usage;
mod users;

use server::audit::AuditLog;

use self::args::{Account, Manage};
use super::operator_audit;
use crate::{output::Output, serve::open_account, settings::Settings};

pub(crate) async fn run(command: Account, settings: Settings, output: &Output) -> anyhow::Result<()> {
    let audit = operator_audit(&settings)?;
    match command {
        Account::Manage(command) => manage(command, (settings, audit), output).await,
        Account::Usage { username } => usage::run(username, (settings, audit), output).await,
    }
}

async fn manage(command: Manage, (settings, audit): (Settings, AuditLog), output: &Output) -> anyhow::Result<()> {
    let (account, mark) = open_account(settings, audit).await?;
    let done = match command {
        Manage::Users { command } => users::run(command, &account, output).await,
        Manage::Clients { command } => clients::run(command, &account, output).await,
        Manage::Components { command } => components::run(command, &account, output).await,
        Manage::Keys { command } => keys::run(command, &account, output).await,
    };
    if let Some(mark) = mark {
        mark.advance().await?;
    }
    done
}

/// Returns a note on listing the rest if the page is full.
fn next_page(command: &str, listed: usize, last: &str) -> Option<String> {
    (listed >= account::LISTED_MAX).then(|| format!("There may be more: airlock account {command} --after {last}"))
}
