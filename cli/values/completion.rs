//! Shell completion of ids: those that the services list for the logged-in user, and for operators those in the
//! server's store.
//!
//! The shell asks this program at each completion, so nothing of it may print or take long.

use std::{env, ffi::OsString, future::Future, sync::Arc, time::Duration};

use account::Account;
use clap::{CommandFactory, Parser};
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use client::{handler::Page, webhooks::WebhookClient};
use server::system::{OsRandom, SystemClock, install_crypto};
use tokio::{runtime, time::timeout};
use types::AppId;

use crate::{
    command_context::CommandContext,
    output::OutputOptions,
    serve::open_running_account,
    settings::{GlobalOptions, Settings},
    terminal::sanitize,
};

/// Maximum time of a completion.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of devices to choose from.
const DEVICES_MAX: u32 = 500;

/// Ids of applications.
pub(crate) fn applications() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        candidates(async |settings, _| {
            let context = context(settings);
            let applications = context.account()?.applications(&context.credential().await?).await?;
            Ok(applications.into_iter().map(|it| candidate(it.id.to_string(), &it.name)).collect())
        })
    })
}

/// Ids of the devices of the application in the line, or else of the selected one.
pub(crate) fn devices() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        candidates(async |settings, named| {
            let context = context(settings);
            let app_id = context.application(named)?;
            let page = Page { limit: DEVICES_MAX, offset: 0 };
            let devices = context.handler_for(&app_id).await?.list_devices(&app_id, page).await?;
            Ok(devices.into_iter().map(|it| candidate(it.dev_id, &it.description)).collect())
        })
    })
}

/// Ids of gateways.
pub(crate) fn gateways() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        candidates(async |settings, _| {
            let context = context(settings);
            let gateways = context.account()?.gateways(&context.credential().await?).await?;
            Ok(gateways.into_iter().map(|it| candidate(it.id.to_string(), &it.frequency_plan)).collect())
        })
    })
}

/// Ids of the webhooks of the application in the line, or else of the selected one.
pub(crate) fn webhooks() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        candidates(async |settings, named| {
            let context = context(settings);
            let app_id = context.application(named)?;
            let credential = context.credential_for(&app_id).await?;
            let client = WebhookClient::connect(&context.announcement().await?, app_id, credential)?;
            Ok(client.list().await?.into_iter().map(|it| candidate(it.id.to_string(), &it.url)).collect())
        })
    })
}

/// Names of the users of the server that runs here.
pub(crate) fn users() -> ArgValueCandidates {
    operator_candidates(async |account| {
        let users = account.list_users(None).await?;
        Ok(users.into_iter().map(|it| candidate(it.user.username.to_string(), &it.user.email)).collect())
    })
}

/// Ids of the OAuth clients of the server that runs here.
pub(crate) fn clients() -> ArgValueCandidates {
    operator_candidates(async |account| {
        let clients = account.list_clients(None).await?;
        Ok(clients.into_iter().map(|it| candidate(it.name.to_string(), &it.description)).collect())
    })
}

/// Ids of the network components of the server that runs here.
pub(crate) fn components() -> ArgValueCandidates {
    operator_candidates(async |account| {
        let components = account.list_components(None).await?;
        Ok(components.into_iter().map(|it| candidate(it.id.to_string(), it.service.as_str())).collect())
    })
}

/// Returns candidates from the server's store. A server that is stopped is left alone.
fn operator_candidates<F>(list: impl Fn(Account) -> F + Copy + Send + Sync + 'static) -> ArgValueCandidates
where
    F: Future<Output = anyhow::Result<Vec<CompletionCandidate>>>,
{
    ArgValueCandidates::new(move || {
        candidates(async |settings, _| match open_running_account(settings).await? {
            Some(account) => list(account).await,
            None => Ok(Vec::new()),
        })
    })
}

fn context(settings: Settings) -> CommandContext {
    CommandContext::new(settings, OutputOptions::default(), Arc::new(SystemClock), Arc::new(OsRandom))
}

fn candidate(id: String, description: &str) -> CompletionCandidate {
    CompletionCandidate::new(id).help((!description.is_empty()).then(|| sanitize(description).into()))
}

/// The options in the line that say which stack and which application is meant.
#[derive(Debug, Default, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Typed {
    #[command(flatten)]
    global: GlobalOptions,
    #[arg(long)]
    app_id: Option<AppId>,
}

impl Typed {
    /// Finds them among all words of the line, which is not finished and so cannot be parsed as a whole.
    fn find(words: impl IntoIterator<Item = OsString>) -> Self {
        let command = Self::command();
        let (mut found, mut words) = (Vec::new(), words.into_iter());
        while let Some(word) = words.next() {
            let text = word.to_string_lossy();
            let (name, has_value) = text.split_once('=').map_or((&*text, false), |(name, _)| (name, true));
            let option = name.strip_prefix("--");
            let known = command.get_arguments().find(|known| option.is_some() && known.get_long() == option);
            let Some(known) = known else { continue };
            found.push(word.clone());
            if known.get_action().takes_values() && !has_value {
                found.extend(words.next());
            }
        }
        Self::try_parse_from(found).unwrap_or_default()
    }
}

/// Returns what `list` finds with the options in the line; nothing if it fails, since nobody can be told.
fn candidates<F>(list: impl FnOnce(Settings, Option<AppId>) -> F) -> Vec<CompletionCandidate>
where
    F: Future<Output = anyhow::Result<Vec<CompletionCandidate>>>,
{
    install_crypto();
    // The shell passes the line behind `--`.
    let Typed { global, app_id } = Typed::find(env::args_os().skip_while(|word| word != "--").skip(1));
    let Ok(settings) = Settings::load(&global) else { return Vec::new() };
    let Ok(runtime) = runtime::Builder::new_current_thread().enable_all().build() else { return Vec::new() };
    runtime
        .block_on(async { timeout(TIMEOUT, list(settings, app_id)).await })
        .ok()
        .and_then(Result::ok)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_in_a_line_that_is_not_finished() {
        let find = |line: &str| Typed::find(line.split(' ').map(OsString::from));
        let typed = find("airlock --data=/srv/a devices info --format --app-id my-app --allow-insecure d");
        assert_eq!(typed.global.data.unwrap().as_os_str(), "/srv/a");
        assert!(typed.app_id.unwrap().as_str() == "my-app" && typed.global.allow_insecure);
        assert!(find("airlock devices info --app-id").app_id.is_none(), "nothing follows it");
    }
}
