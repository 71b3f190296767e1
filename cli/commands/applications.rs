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
    command_context::CommandContext,
    output::{Cell, Record, Table},
    terminal::{Confirmation, confirm},
};

pub(crate) async fn run(command: Applications, context: &CommandContext) -> anyhow::Result<()> {
    match command {
        Applications::Add { app_id, description, app_eui, skip_register, skip_select } => {
            let new = NewApplication { id: app_id, name: description, euis: app_eui, access_keys: Vec::new() };
            let app_id = create(context, new).await?;
            if skip_select {
                return Ok(());
            }
            select::remember(context, app_id.clone(), None)?;
            if skip_register {
                return Ok(());
            }
            let result = register(context, &app_id).await;
            result.context("cannot register it with the handler: try `airlock applications register` later")
        }
        Applications::List { deleted } => list(context, deleted).await,
        Applications::Info { app_id } => get(context, context.application(app_id)?).await,
        Applications::Config => config(context),
        Applications::Select { app_id, app_eui } => select::run(context, app_id, app_eui).await,
        Applications::Delete { app_id, confirmation } => {
            delete(context, context.application(app_id)?, confirmation).await
        }
        Applications::Restore { app_id, version: Some(version), label } => {
            versions::restore((context, &context.application(app_id)?), version, label).await
        }
        Applications::Restore { app_id, .. } => restore(context, &context.application(app_id)?).await,
        Applications::Versions { app_id } => versions::list(context, &context.application(app_id)?).await,
        Applications::Diff { from, to, app_id } => {
            versions::diff((context, &context.application(app_id)?), from, to).await
        }
        Applications::Label { version, label, app_id } => {
            versions::label((context, &context.application(app_id)?), version, label).await
        }
        Applications::Set { app_id, change } => update(context, &context.application(app_id)?, change).await,
        Applications::Register => register(context, &context.application(None)?).await,
        Applications::Unregister { confirmation } => {
            unregister(context, context.application(None)?, confirmation).await
        }
        Applications::Key { app_id, named, name } => {
            keys::print(context, &context.application(app_id.or(named))?, name).await
        }
        Applications::Keys { app_id, command } => keys::run(command, &context.application(app_id)?, context).await,
        Applications::Euis { app_id, command } => euis::run(command, &context.application(app_id)?, context).await,
        Applications::Collaborators { command } => collaborators::run(command, context).await,
        Applications::Silence { time, app_id } => silence::run(context, context.application(app_id)?, time).await,
        Applications::Pf { app_id, command } => {
            let get = PayloadFunctions::Get { version: None };
            functions(command.unwrap_or(get), &context.application(app_id)?, context).await
        }
    }
}

async fn functions(command: PayloadFunctions, app_id: &AppId, context: &CommandContext) -> anyhow::Result<()> {
    match command {
        PayloadFunctions::Get { version } => functions::get((context, app_id), version).await,
        PayloadFunctions::Set(set) => functions::set((context, app_id), set).await,
        PayloadFunctions::Share(change) => candidates::share((context, app_id), change).await,
        PayloadFunctions::Promote => candidates::promote(context, app_id).await,
        PayloadFunctions::Abandon => candidates::abandon(context, app_id).await,
    }
}

async fn create(context: &CommandContext, new: NewApplication) -> anyhow::Result<AppId> {
    let created = context.account()?.create_application(&context.credential().await?, &new).await?;
    context.output.message(format_args!("Added application {} with EUI {}", created.id, euis::join(&created.euis)))?;
    Ok(created.id)
}

async fn delete(context: &CommandContext, app_id: AppId, confirmation: Confirmation) -> anyhow::Result<()> {
    confirm(format_args!("Delete application {app_id} for all collaborators?"), confirmation)?;
    let credential = context.credential_for(&app_id).await?;
    context.account()?.delete_application(&credential, &app_id).await?;
    if context.files.selection()?.is_some_and(|selection| selection.app_id == app_id) {
        context.files.delete_selection()?;
    }
    context.output.message(format_args!("Deleted application {app_id}"))
}

async fn restore(context: &CommandContext, app_id: &AppId) -> anyhow::Result<()> {
    context.account()?.restore_application(&context.credential_for(app_id).await?, app_id).await?;
    context.output.message(format_args!("Restored application {app_id} with its keys, EUIs and collaborators"))
}

async fn update(context: &CommandContext, app_id: &AppId, change: ApplicationChange) -> anyhow::Result<()> {
    let (account, credential) = (context.account()?, context.credential_for(app_id).await?);
    if let Some(description) = &change.description {
        account.rename_application(&credential, app_id, description).await?;
    }
    if let Some(owner) = &change.owner {
        account.transfer_application(&credential, app_id, owner).await?;
    }
    context.output.message(format_args!("Updated application {app_id}"))
}

async fn register(context: &CommandContext, app_id: &AppId) -> anyhow::Result<()> {
    match context.handler_for(app_id).await?.register_application(app_id).await {
        Ok(()) => context.output.message(format_args!("Registered application {app_id} with the handler")),
        Err(error) if error.kind() == Kind::AlreadyExists => {
            context.output.message(format_args!("Application {app_id} is already registered with the handler"))
        }
        Err(error) => Err(error.into()),
    }
}

async fn unregister(context: &CommandContext, app_id: AppId, confirmation: Confirmation) -> anyhow::Result<()> {
    let question = format_args!("Remove application {app_id} from the handler, with its functions and devices?");
    confirm(question, confirmation)?;
    context.handler_for(&app_id).await?.delete_application(&app_id).await?;
    context.output.message(format_args!("Removed application {app_id} from the handler"))
}

/// Prints the configuration that the commands use. Nothing of it is checked, so it also shows when something is wrong.
fn config(context: &CommandContext) -> anyhow::Result<()> {
    let (selection, login) = (context.files.selection()?, context.files.login()?);
    let client = context.settings();
    let unset = |text: &str| Cell::new(text, Value::Null);
    let app_eui = selection.as_ref().and_then(|selection| selection.app_eui);
    context.output.record(Record::new([
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
async fn list(context: &CommandContext, deleted: bool) -> anyhow::Result<()> {
    let (account, credential) = (context.account()?, context.credential().await?);
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
    context.output.table(Table::new(columns, chosen.map(row)), none)
}

async fn get(context: &CommandContext, app_id: AppId) -> anyhow::Result<()> {
    let credential = context.credential_for(&app_id).await?;
    let application = context.account()?.application(&credential, &app_id).await?;
    let record = Record::new([
        (("app_id", "AppID"), app_id.to_string().into()),
        (("name", "Name"), application.name.into()),
        (("euis", "EUIs"), euis::cell(&application.euis)),
    ]);
    let keys = keys::table(application.access_keys.unwrap_or_default());
    let people = collaborators_table(application.collaborators.unwrap_or_default());
    context.output.record(record.with("access_keys", keys).with("collaborators", people))
}
