//! `airlock applications …`: applications, their keys, EUIs and collaborators, and their payload functions.

pub(crate) mod args;
mod candidates;
mod collaborators;
pub(crate) mod dry_run;
mod euis;
pub(crate) mod functions;
mod keys;
mod percent;
mod select;
mod silence;
mod versions;

use anyhow::Context;
use api::rest::account::{Application, NewApplication};
use serde_json::Value;
use types::{AppId, Kind, Kinded};

use self::args::{ApplicationChange, Applications, PayloadFunctions};
use super::collaborators_table;
use crate::{
    network::Network,
    output::{Cell, Record, Table},
    terminal::{Confirmation, confirm},
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
        Applications::List { deleted } => list(network, deleted).await,
        Applications::Info { app_id } => get(network, network.application(app_id)?).await,
        Applications::Config => config(network),
        Applications::Select { app_id, app_eui } => select::run(network, app_id, app_eui).await,
        Applications::Delete { app_id, confirmation } => {
            delete(network, network.application(app_id)?, confirmation).await
        }
        Applications::Restore { app_id, version: Some(version), label } => {
            versions::restore((network, &network.application(app_id)?), version, label).await
        }
        Applications::Restore { app_id, .. } => restore(network, &network.application(app_id)?).await,
        Applications::Versions { app_id } => versions::list(network, &network.application(app_id)?).await,
        Applications::Diff { from, to, app_id } => {
            versions::diff((network, &network.application(app_id)?), from, to).await
        }
        Applications::Label { version, label, app_id } => {
            versions::label((network, &network.application(app_id)?), version, label).await
        }
        Applications::Set { app_id, change } => update(network, &network.application(app_id)?, change).await,
        Applications::Register => register(network, &network.application(None)?).await,
        Applications::Unregister { confirmation } => {
            unregister(network, network.application(None)?, confirmation).await
        }
        Applications::Key { app_id, named, name } => {
            keys::print(network, &network.application(app_id.or(named))?, name).await
        }
        Applications::Keys { app_id, command } => keys::run(command, &network.application(app_id)?, network).await,
        Applications::Euis { app_id, command } => euis::run(command, &network.application(app_id)?, network).await,
        Applications::Collaborators { command } => collaborators::run(command, network).await,
        Applications::Silence { time, app_id } => silence::run(network, network.application(app_id)?, time).await,
        Applications::Pf { command } => {
            let get = PayloadFunctions::Get { version: None };
            functions(command.unwrap_or(get), network).await
        }
    }
}

async fn functions(command: PayloadFunctions, network: &Network) -> anyhow::Result<()> {
    match command {
        PayloadFunctions::Get { version } => functions::get(network, version).await,
        PayloadFunctions::Set(set) => functions::set(network, set).await,
        PayloadFunctions::Share(change) => candidates::share(network, change).await,
        PayloadFunctions::Promote => candidates::promote(network).await,
        PayloadFunctions::Abandon => candidates::abandon(network).await,
    }
}

async fn create(network: &Network, new: NewApplication) -> anyhow::Result<AppId> {
    let created = network.account()?.create_application(&network.credential().await?, &new).await?;
    network.output.message(format_args!("Added application {} with EUI {}", created.id, euis::join(&created.euis)))?;
    Ok(created.id)
}

async fn delete(network: &Network, app_id: AppId, confirmation: Confirmation) -> anyhow::Result<()> {
    confirm(format_args!("Delete application {app_id} for all collaborators?"), confirmation)?;
    let credential = network.credential_for(&app_id).await?;
    network.account()?.delete_application(&credential, &app_id).await?;
    if network.files.selection()?.is_some_and(|selection| selection.app_id == app_id) {
        network.files.delete_selection()?;
    }
    network.output.message(format_args!("Deleted application {app_id}"))
}

async fn restore(network: &Network, app_id: &AppId) -> anyhow::Result<()> {
    network.account()?.restore_application(&network.credential_for(app_id).await?, app_id).await?;
    network.output.message(format_args!("Restored application {app_id} with its keys, EUIs and collaborators"))
}

async fn update(network: &Network, app_id: &AppId, change: ApplicationChange) -> anyhow::Result<()> {
    let (account, credential) = (network.account()?, network.credential_for(app_id).await?);
    if let Some(description) = &change.description {
        account.rename_application(&credential, app_id, description).await?;
    }
    if let Some(owner) = &change.owner {
        account.transfer_application(&credential, app_id, owner).await?;
    }
    network.output.message(format_args!("Updated application {app_id}"))
}

async fn register(network: &Network, app_id: &AppId) -> anyhow::Result<()> {
    match network.handler_for(app_id).await?.register_application(app_id).await {
        Ok(()) => network.output.message(format_args!("Registered application {app_id} with the handler")),
        Err(error) if error.kind() == Kind::AlreadyExists => {
            network.output.message(format_args!("Application {app_id} is already registered with the handler"))
        }
        Err(error) => Err(error.into()),
    }
}

async fn unregister(network: &Network, app_id: AppId, confirmation: Confirmation) -> anyhow::Result<()> {
    let question = format_args!("Remove application {app_id} from the handler, with its functions and devices?");
    confirm(question, confirmation)?;
    network.handler_for(&app_id).await?.delete_application(&app_id).await?;
    network.output.message(format_args!("Removed application {app_id} from the handler"))
}

/// Prints the configuration that the commands use. Nothing of it is checked, so it also shows when something is wrong.
fn config(network: &Network) -> anyhow::Result<()> {
    let (selection, login) = (network.files.selection()?, network.files.login()?);
    let client = network.settings();
    let unset = |text: &str| Cell::new(text, Value::Null);
    let app_eui = selection.as_ref().and_then(|selection| selection.app_eui);
    network.output.record(Record::new([
        (("app_id", "AppID"), selection.map_or_else(|| unset("none selected"), |it| it.app_id.to_string().into())),
        (("app_eui", "AppEUI"), app_eui.map(|eui| eui.to_hex()).into()),
        (("username", "User"), login.map_or_else(|| unset("not logged in"), |it| it.username.to_string().into())),
        (("auth_server", "Account service"), client.auth_server.clone().into()),
        (("discovery_address", "Discovery service"), client.discovery_address.clone().into()),
        (("handler_id", "Handler"), client.handler_id.to_string().into()),
        (
            ("mqtt_address", "MQTT broker"),
            client.mqtt_address.clone().map_or_else(|| unset("the one that the handler announces"), Cell::from),
        ),
    ]))
}

/// The caller's applications, or those that were deleted and can be restored.
async fn list(network: &Network, deleted: bool) -> anyhow::Result<()> {
    let (account, credential) = (network.account()?, network.credential().await?);
    let applications = match deleted {
        true => account.applications_and_deleted(&credential).await?,
        false => account.applications(&credential).await?,
    };
    let row = |application: Application| {
        [
            application.id.to_string().into(),
            application.name.into(),
            euis::cell(&application.euis),
            application.access_keys.unwrap_or_default().len().into(),
            application.collaborators.unwrap_or_default().len().into(),
        ]
    };
    let columns = [
        ("id", "ID"),
        ("name", "Description"),
        ("euis", "EUIs"),
        ("access_keys", "Access keys"),
        ("collaborators", "Collaborators"),
    ];
    let chosen = applications.into_iter().filter(|application| application.deleted.is_some() == deleted);
    let none = match deleted {
        true => "You have no deleted applications",
        false => "You have no applications. Add one with `airlock applications add`",
    };
    network.output.table(Table::new(columns, chosen.map(row)), none)
}

async fn get(network: &Network, app_id: AppId) -> anyhow::Result<()> {
    let credential = network.credential_for(&app_id).await?;
    let application = network.account()?.application(&credential, &app_id).await?;
    let record = Record::new([
        (("app_id", "AppID"), app_id.to_string().into()),
        (("name", "Name"), application.name.into()),
        (("euis", "EUIs"), euis::cell(&application.euis)),
    ]);
    let keys = keys::table(application.access_keys.unwrap_or_default());
    let people = collaborators_table(application.collaborators.unwrap_or_default());
    network.output.record(record.with("access_keys", keys).with("collaborators", people))
}
