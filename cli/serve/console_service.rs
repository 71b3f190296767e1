//! The console: part of the account service's site in `airlock serve`, or alone.

use std::{sync::Arc, time::Duration};

use account::Account;
use anyhow::Context as _;
use axum::Router;
use client::account::AccountClient;
use console::{Console, ConsoleAddress, Environment};
use server::{
    error_response::ErrorFormat,
    seal::{KeyOwner, SealingKeys},
    secret_file::read_secret,
    serve::{HttpService, Listeners, Server},
    shutdown::Shutdown,
    system::OsRandom,
    telemetry::Metrics,
};
use tokio_util::sync::CancellationToken;
use types::{Clock, Secret};

use super::{data_dir::DataDir, local_address::from_here};
use crate::{
    command_context, playground_page,
    services::telemetry::{self, Process},
    settings::Settings,
    terminal::say,
};

/// The console as a part of the account service's site. It reaches that service at `account_url`.
pub(super) async fn with_account(
    settings: &Settings,
    (account, account_url): (Account, &str),
    (clock, stop): (Arc<dyn Clock>, CancellationToken),
) -> anyhow::Result<(Account, Console)> {
    let client_id = &settings.console.client_id;
    let account = account.with_console(client_id, console::Settings::CALLBACK).await?;
    let account = account.with_console_operators(&settings.console.operators);
    let place = ConsoleAddress::WithAccount { public_url: account.public_url().to_string() };
    let environment = environment(settings, AccountClient::new(account_url)?, (clock, stop))?;
    let console = Console::new(settings.console.clone(), place, environment);
    let console = console.with_first_operator(account.first_operator());
    Ok((account, console))
}

/// The pages of the console, and the playground to which they lead.
pub(super) fn pages(console: &Console, settings: &Settings) -> anyhow::Result<Router> {
    let playground = playground_page::router(Console::PLAYGROUND, &settings.sandbox.limits, None::<&()>)?;
    Ok(console.router().merge(playground))
}

/// Runs the console alone until a signal arrives.
pub(super) async fn run(
    settings: &Settings,
    clock: Arc<dyn Clock>,
    (metrics, shutdown): (Metrics, Shutdown),
) -> anyhow::Result<()> {
    let server = Server::new(settings.serve.clone(), Arc::new(OsRandom), shutdown.requested.clone());
    let listeners = Listeners::new().plain(&settings.console.listen).await?;
    let address = *listeners.addresses().first().context("the console has no listener")?;
    let public_url = settings.console.public_url.clone();
    let public_url = public_url.unwrap_or_else(|| format!("http://{}", from_here(address)));
    let auth_server = &settings.client.auth_server;
    let account_url = settings.console.account_url.clone().unwrap_or_else(|| auth_server.clone());
    let place = ConsoleAddress::Alone { public_url: public_url.clone(), account_url };
    let account = AccountClient::new(auth_server)?;
    let environment = environment(settings, account, (clock, shutdown.requested.clone()))?;
    let console = Console::new(settings.console.clone(), place, environment);
    console.connect(command_context::discovery(settings)?);
    let service = HttpService::new("console", pages(&console, settings)?, ErrorFormat::Account);
    let serving = server.start(service, listeners);
    telemetry::serve(settings, Process::Console, metrics, &shutdown, |_| ()).await?;
    say(format_args!("Console: {public_url}/console"))?;
    shutdown.requested.cancelled().await;
    shutdown.drain(serving.finished(), Duration::from_millis(settings.serve.drain_timeout_ms)).await;
    Ok(())
}

fn environment(
    settings: &Settings,
    account: AccountClient,
    (clock, stop): (Arc<dyn Clock>, CancellationToken),
) -> anyhow::Result<Environment> {
    let random = Arc::new(OsRandom);
    let key = DataDir::open(&settings.data_dir)?.console_key();
    let keys = SealingKeys::load_or_create(KeyOwner::Console, &key, random.as_ref())?;
    let client_secret = match &settings.console.client_secret_file {
        Some(path) => read_secret(path)?,
        None => Secret::default(),
    };
    Ok(Environment {
        account,
        client_secret,
        handler_id: settings.client.handler_id.clone(),
        allow_insecure: settings.client.allow_insecure,
        keys,
        clock,
        random,
        stop,
    })
}
