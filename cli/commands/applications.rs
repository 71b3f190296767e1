//! `airlock applications …`: applications, who works with them, and their payload functions.

pub(crate) mod args;
mod collaborators;
mod dry_run;
mod functions;
mod select;

use anyhow::Context;
use api::rest::account::{AccessKey, NewApplication};
use types::{AppEui, AppId, ApplicationRight, Clock, Credential, Kind, Kinded};

use self::args::{Applications, PayloadFunctions, Sure};
use crate::{
    network::Network,
    terminal::{confirm, fields, say, table},
};

/// Runs one of the commands.
pub(crate) async fn run(command: Applications, network: &Network, clock: &dyn Clock) -> anyhow::Result<()> {
    match command {
        Applications::Add { app_id, description, app_eui, skip_register, skip_select } => {
            let new = NewApplication { id: app_id, name: description, euis: app_eui, access_keys: Vec::new() };
            let app_id = add(network, clock, new).await?;
            if skip_select {
                return Ok(());
            }
            select::remember(network, app_id.clone(), None)?;
            if skip_register {
                return Ok(());
            }
            let registered = register(network, clock, &app_id).await;
            registered.context("it is not registered with the handler: try `airlock applications register` later")
        }
        Applications::List => list(network, clock).await,
        Applications::Info { app_id } => info(network, clock, network.application(app_id)?).await,
        Applications::Select { app_id, app_eui } => select::run(network, clock, app_id, app_eui).await,
        Applications::Delete { app_id, sure } => delete(network, clock, network.application(app_id)?, sure).await,
        Applications::Register => register(network, clock, &network.application(None)?).await,
        Applications::Unregister { sure } => unregister(network, clock, network.application(None)?, sure).await,
        Applications::Key { app_id, name } => key(network, clock, network.application(app_id)?, name).await,
        Applications::Collaborators { command } => collaborators::run(command, network, clock).await,
        Applications::Pf { command: None } => functions::show(network, clock).await,
        Applications::Pf { command: Some(PayloadFunctions::Set { what, file, skip_test }) } => {
            functions::set(network, clock, what, &file, skip_test).await
        }
    }
}

async fn add(network: &Network, clock: &dyn Clock, new: NewApplication) -> anyhow::Result<AppId> {
    let added = network.account()?.create_application(&network.credential(clock).await?, &new).await?;
    say(format_args!("Added application {} with EUI {}", added.id, euis(&added.euis)))?;
    Ok(added.id)
}

async fn delete(network: &Network, clock: &dyn Clock, app_id: AppId, sure: Sure) -> anyhow::Result<()> {
    if !confirm(format_args!("Delete application {app_id} for everybody?"), sure)? {
        return Ok(());
    }
    let credential = network.credential_for(&app_id, clock).await?;
    network.account()?.delete_application(&credential, &app_id).await?;
    if network.files.selection()?.is_some_and(|selection| selection.app_id == app_id) {
        network.files.unselect()?;
    }
    say(format_args!("Deleted application {app_id}"))
}

async fn register(network: &Network, clock: &dyn Clock, app_id: &AppId) -> anyhow::Result<()> {
    let credential = network.credential_for(app_id, clock).await?;
    match network.handler(credential).await?.register_application(app_id).await {
        Ok(()) => say(format_args!("Registered application {app_id} with the handler")),
        Err(error) if error.kind() == Kind::AlreadyExists => {
            say(format_args!("Application {app_id} is registered with the handler already"))
        }
        Err(error) => Err(error.into()),
    }
}

async fn unregister(network: &Network, clock: &dyn Clock, app_id: AppId, sure: Sure) -> anyhow::Result<()> {
    if !confirm(format_args!("Remove application {app_id} from the handler, with its functions and devices?"), sure)? {
        return Ok(());
    }
    let credential = network.credential_for(&app_id, clock).await?;
    network.handler(credential).await?.delete_application(&app_id).await?;
    say(format_args!("Removed application {app_id} from the handler"))
}

async fn list(network: &Network, clock: &dyn Clock) -> anyhow::Result<()> {
    let applications = network.account()?.applications(&network.credential(clock).await?).await?;
    if applications.is_empty() {
        return say("You have no applications; add one with `airlock applications add`");
    }
    table(
        ["ID", "Description", "EUIs", "Access keys", "Collaborators"],
        applications.into_iter().map(|application| {
            [
                application.id.to_string(),
                application.name,
                application.euis.len().to_string(),
                application.access_keys.unwrap_or_default().len().to_string(),
                application.collaborators.unwrap_or_default().len().to_string(),
            ]
        }),
    )
}

async fn info(network: &Network, clock: &dyn Clock, app_id: AppId) -> anyhow::Result<()> {
    let credential = network.credential_for(&app_id, clock).await?;
    let application = network.account()?.application(&credential, &app_id).await?;
    fields([("AppID", app_id.to_string()), ("Name", application.name), ("EUIs", euis(&application.euis))])?;
    let keys = application.access_keys.unwrap_or_default();
    table(
        ["Access key", "Key", "Rights"],
        keys.into_iter().map(|key| [key.name.clone(), shown(&key), names(&key.rights)]),
    )?;
    let collaborators = application.collaborators.unwrap_or_default();
    table(
        ["Collaborator", "Rights"],
        collaborators.into_iter().map(|person| [person.username.to_string(), names(&person.rights)]),
    )
}

/// Prints one access key and nothing else, so that a shell can use it.
async fn key(network: &Network, clock: &dyn Clock, app_id: AppId, name: Option<String>) -> anyhow::Result<()> {
    let credential = network.credential_for(&app_id, clock).await?;
    let key = access_key(network, &credential, &app_id, name.as_deref(), ApplicationRight::MessagesUpRead).await?;
    say(key.expose())
}

/// The access key of that name, else the first that has a right.
pub(crate) async fn access_key(
    network: &Network,
    credential: &Credential,
    app_id: &AppId,
    name: Option<&str>,
    right: ApplicationRight,
) -> anyhow::Result<types::AccessKey> {
    let keys = network.account()?.access_keys(credential, app_id).await?;
    let wanted = |key: &AccessKey| match name {
        Some(name) => key.name == name,
        None => key.rights.contains(&right),
    };
    let found = keys.into_iter().find(wanted).and_then(|key| key.key);
    found.with_context(|| {
        format!("no such access key of {app_id} that you may see: look with `airlock applications info`")
    })
}

fn euis(euis: &[AppEui]) -> String {
    euis.iter().map(AppEui::to_hex).collect::<Vec<_>>().join(", ")
}

fn shown(key: &AccessKey) -> String {
    key.key.as_ref().map(|key| key.expose().to_owned()).unwrap_or_default()
}

/// Rights as people read them.
pub(crate) fn names<R: Copy + Into<&'static str>>(rights: &[R]) -> String {
    rights.iter().map(|right| (*right).into()).collect::<Vec<_>>().join(", ")
}
