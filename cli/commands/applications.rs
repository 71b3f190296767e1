//! `airlock applications …`: applications, their collaborators, and their payload functions.

pub(crate) mod args;
mod collaborators;
pub(crate) mod dry_run;
mod functions;
mod select;

use anyhow::Context;
use api::rest::account::NewApplication;
use types::{AppEui, AppId, ApplicationRight, Kind, Kinded};

use self::args::{Applications, PayloadFunctions};
use crate::{
    network::Network,
    terminal::{Confirmation, confirm, fields, say, table},
};

pub(crate) async fn run(command: Applications, network: &Network) -> anyhow::Result<()> {
    match command {
        Applications::Add { app_id, description, app_eui, skip_register, skip_select } => {
            let new = NewApplication { id: app_id, name: description, euis: app_eui, access_keys: Vec::new() };
            let app_id = create(network, new).await?;
            if skip_select {
                return Ok(());
            }
            select::remember(network, app_id.clone(), None)?;
            if skip_register {
                return Ok(());
            }
            let result = register(network, &app_id).await;
            result.context("cannot register it with the handler: try `airlock applications register` later")
        }
        Applications::List => list(network).await,
        Applications::Info { app_id } => get(network, network.application(app_id)?).await,
        Applications::Config => config(network),
        Applications::Select { app_id, app_eui } => select::run(network, app_id, app_eui).await,
        Applications::Delete { app_id, confirmation } => {
            delete(network, network.application(app_id)?, confirmation).await
        }
        Applications::Register => register(network, &network.application(None)?).await,
        Applications::Unregister { confirmation } => {
            unregister(network, network.application(None)?, confirmation).await
        }
        Applications::Key { app_id, name } => get_access_key(network, network.application(app_id)?, name).await,
        Applications::Collaborators { command } => collaborators::run(command, network).await,
        Applications::Pf { command: None | Some(PayloadFunctions::Get) } => functions::get(network).await,
        Applications::Pf { command: Some(PayloadFunctions::Set { what, file, skip_test }) } => {
            functions::set(network, what, &file, skip_test).await
        }
    }
}

async fn create(network: &Network, new: NewApplication) -> anyhow::Result<AppId> {
    let created = network.account()?.create_application(&network.credential().await?, &new).await?;
    say(format_args!("Added application {} with EUI {}", created.id, join_euis(&created.euis)))?;
    Ok(created.id)
}

async fn delete(network: &Network, app_id: AppId, confirmation: Confirmation) -> anyhow::Result<()> {
    confirm(format_args!("Delete application {app_id} for all collaborators?"), confirmation)?;
    let credential = network.credential_for(&app_id).await?;
    network.account()?.delete_application(&credential, &app_id).await?;
    if network.files.selection()?.is_some_and(|selection| selection.app_id == app_id) {
        network.files.delete_selection()?;
    }
    say(format_args!("Deleted application {app_id}"))
}

async fn register(network: &Network, app_id: &AppId) -> anyhow::Result<()> {
    match network.handler_for(app_id).await?.register_application(app_id).await {
        Ok(()) => say(format_args!("Registered application {app_id} with the handler")),
        Err(error) if error.kind() == Kind::AlreadyExists => {
            say(format_args!("Application {app_id} is already registered with the handler"))
        }
        Err(error) => Err(error.into()),
    }
}

async fn unregister(network: &Network, app_id: AppId, confirmation: Confirmation) -> anyhow::Result<()> {
    let question = format_args!("Remove application {app_id} from the handler, with its functions and devices?");
    confirm(question, confirmation)?;
    network.handler_for(&app_id).await?.delete_application(&app_id).await?;
    say(format_args!("Removed application {app_id} from the handler"))
}

/// What the commands use. Nothing of it is checked, so it also shows when something is wrong.
fn config(network: &Network) -> anyhow::Result<()> {
    let (selection, login) = (network.files.selection()?, network.files.login()?);
    let client = network.settings();
    fields([
        ("AppID", selection.as_ref().map_or_else(|| "none selected".to_owned(), |it| it.app_id.to_string())),
        ("AppEUI", selection.and_then(|it| it.app_eui).map(|eui| eui.to_hex()).unwrap_or_default()),
        ("User", login.map_or_else(|| "not logged in".to_owned(), |it| it.username.to_string())),
        ("Account service", client.auth_server.clone()),
        ("Discovery service", client.discovery_address.clone()),
        ("Handler", client.handler_id.to_string()),
        ("MQTT broker", client.mqtt_address.clone().unwrap_or_else(|| "the one that the handler announces".to_owned())),
    ])
}

async fn list(network: &Network) -> anyhow::Result<()> {
    let applications = network.account()?.applications(&network.credential().await?).await?;
    if applications.is_empty() {
        return say("You have no applications. Add one with `airlock applications add`");
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

async fn get(network: &Network, app_id: AppId) -> anyhow::Result<()> {
    let credential = network.credential_for(&app_id).await?;
    let application = network.account()?.application(&credential, &app_id).await?;
    fields([("AppID", app_id.to_string()), ("Name", application.name), ("EUIs", join_euis(&application.euis))])?;
    let keys = application.access_keys.unwrap_or_default();
    table(
        ["Access key", "Key", "Rights"],
        keys.into_iter().map(|key| {
            let value = key.key.as_ref().map(|key| key.expose().to_owned()).unwrap_or_default();
            [key.name, value, join_rights(&key.rights)]
        }),
    )?;
    let collaborators = application.collaborators.unwrap_or_default();
    table(
        ["Collaborator", "Rights"],
        collaborators.into_iter().map(|person| [person.username.to_string(), join_rights(&person.rights)]),
    )
}

/// Prints the access key and nothing else, so that scripts can use it.
async fn get_access_key(network: &Network, app_id: AppId, name: Option<String>) -> anyhow::Result<()> {
    let credential = network.credential_for(&app_id).await?;
    let right = ApplicationRight::MessagesUpRead;
    let key = network.access_key(&credential, &app_id, name.as_deref(), right).await?;
    say(key.expose())
}

fn join_euis(euis: &[AppEui]) -> String {
    euis.iter().map(AppEui::to_hex).collect::<Vec<_>>().join(", ")
}

pub(crate) fn join_rights<R: Copy + Into<&'static str>>(rights: &[R]) -> String {
    rights.iter().map(|right| (*right).into()).collect::<Vec<_>>().join(", ")
}
