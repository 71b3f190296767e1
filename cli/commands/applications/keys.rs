//! `airlock applications keys …` and `key`: the access keys of an application.

use api::rest::account::{AccessKey, NewAccessKey};
use clap::Subcommand;
use types::{AppId, ApplicationRight};

use super::super::{join_rights, rights};
use crate::{
    command_context::CommandContext,
    output::{Record, Table},
    terminal::{Confirmation, confirm, sanitize},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// List the access keys; those with more rights than you have come without the key
    #[command(visible_alias = "ls")]
    #[command(after_help = "Example:\n  airlock applications keys list --app-id my-app")]
    List,
    /// Create an access key, and print it
    #[command(visible_alias = "create")]
    #[command(
        after_help = "Examples:\n  airlock applications keys add dashboard messages:up:r\n  airlock applications keys add control messages:down:w --app-id my-app --output json"
    )]
    Add {
        /// Name of the key
        name: String,
        /// Rights: settings, delete, collaborators, devices, messages:up:r, messages:up:w, messages:down:w
        #[arg(required = true)]
        rights: Vec<ApplicationRight>,
    },
    /// Delete an access key; what uses it is refused from then on
    #[command(visible_aliases = ["remove", "rm"])]
    #[command(after_help = "Example:\n  airlock applications keys delete dashboard")]
    Delete {
        /// Name of the key
        name: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

pub(super) async fn run(command: Keys, app_id: &AppId, context: &CommandContext) -> anyhow::Result<()> {
    match command {
        Keys::List => list(context, app_id).await,
        Keys::Add { name, rights } => create(context, app_id, NewAccessKey { name, rights }).await,
        Keys::Delete { name, confirmation } => {
            let question =
                format_args!("Delete access key {name} of application {app_id}? What uses it is refused then.");
            confirm(question, confirmation)?;
            context.account()?.delete_access_key(&context.credential_for(app_id).await?, app_id, &name).await?;
            context.output.message(format_args!("Deleted access key {name} of application {app_id}"))
        }
    }
}

/// Prints the access key with that name and nothing else, so that scripts can use it.
pub(super) async fn print(context: &CommandContext, app_id: &AppId, name: Option<String>) -> anyhow::Result<()> {
    let credential = context.credential_for(app_id).await?;
    let right = ApplicationRight::MessagesUpRead;
    let key = context.access_key(&credential, app_id, name.as_deref(), right).await?;
    context.output.value("key", key.expose())
}

/// The keys as rows.
pub(super) fn table(keys: Vec<AccessKey>) -> Table {
    let row = |key: AccessKey| {
        let value = key.key.as_ref().map(|key| key.expose().to_owned());
        [key.name.into(), value.into(), rights(&key.rights)]
    };
    Table::new([("name", "Access key"), ("key", "Key"), ("rights", "Rights")], keys.into_iter().map(row))
}

async fn list(context: &CommandContext, app_id: &AppId) -> anyhow::Result<()> {
    let keys = context.account()?.access_keys(&context.credential_for(app_id).await?, app_id).await?;
    let hint = "Add one with `airlock applications keys add`";
    context.output.table(table(keys), format_args!("Application {app_id} has no access keys. {hint}"))
}

/// Prints the key alone on the last line, so that scripts can use it.
async fn create(context: &CommandContext, app_id: &AppId, new: NewAccessKey) -> anyhow::Result<()> {
    let created = context.account()?.add_access_key(&context.credential_for(app_id).await?, app_id, &new).await?;
    let key = created.key.as_ref().map(|key| key.expose().to_owned()).unwrap_or_default();
    let (name, list) = (sanitize(&created.name), join_rights(&created.rights));
    context
        .output
        .message(format_args!("Added access key {name} of application {app_id} with these rights: {list}"))?;
    if context.output.is_table() {
        return context.output.value("key", &key);
    }
    context.output.record(Record::new([
        (("name", "Access key"), created.name.into()),
        (("key", "Key"), key.into()),
        (("rights", "Rights"), rights(&created.rights)),
    ]))
}
