//! `airlock applications euis …`: the EUIs of an application.

use clap::Subcommand;
use types::{AppEui, AppId};

use crate::{
    command_context::{CommandContext, session::Selection},
    output::{Cell, Table},
    terminal::{Confirmation, confirm},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Euis {
    /// List the EUIs
    #[command(visible_alias = "ls")]
    #[command(after_help = "Example:\n  airlock applications euis list")]
    List,
    /// Add an EUI
    #[command(visible_alias = "create")]
    #[command(
        after_help = "Examples:\n  airlock applications euis add\n  airlock applications euis add 70B3D57ED0000001 --app-id my-app"
    )]
    Add {
        /// EUI that you own [default: a new one from the network's block]
        eui: Option<AppEui>,
    },
    /// Remove an EUI, after which another application may have it
    #[command(visible_aliases = ["remove", "rm"])]
    #[command(after_help = "Example:\n  airlock applications euis delete 70B3D57ED0000001")]
    Delete {
        /// EUI
        eui: AppEui,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

pub(super) async fn run(command: Euis, app_id: &AppId, context: &CommandContext) -> anyhow::Result<()> {
    match command {
        Euis::List => list(context, app_id).await,
        Euis::Add { eui } => create(context, app_id, eui).await,
        Euis::Delete { eui, confirmation } => delete(context, app_id, eui, confirmation).await,
    }
}

pub(super) fn join(euis: &[AppEui]) -> String {
    euis.iter().map(AppEui::to_hex).collect::<Vec<_>>().join(", ")
}

pub(super) fn cell(euis: &[AppEui]) -> Cell {
    Cell::list(&euis.iter().map(AppEui::to_hex).collect::<Vec<_>>(), ", ")
}

async fn list(context: &CommandContext, app_id: &AppId) -> anyhow::Result<()> {
    let euis = context.account()?.euis(&context.credential_for(app_id).await?, app_id).await?;
    let table = Table::new([("eui", "EUI")], euis.into_iter().map(|eui| [eui.to_hex().into()]));
    let hint = "Add one with `airlock applications euis add`";
    context.output.table(table, format_args!("Application {app_id} has no EUIs. {hint}"))
}

async fn create(context: &CommandContext, app_id: &AppId, named: Option<AppEui>) -> anyhow::Result<()> {
    let (account, credential) = (context.account()?, context.credential_for(app_id).await?);
    let eui = match named {
        Some(eui) => account.add_eui(&credential, app_id, eui).await.map(|()| eui)?,
        None => account.create_eui(&credential, app_id).await?,
    };
    context.output.message(format_args!("Added EUI {eui} to application {app_id}"))?;
    if context.output.is_table() { Ok(()) } else { context.output.value("eui", &eui.to_hex()) }
}

async fn delete(
    context: &CommandContext,
    app_id: &AppId,
    eui: AppEui,
    confirmation: Confirmation,
) -> anyhow::Result<()> {
    let question = format_args!("Remove EUI {eui} from application {app_id}? Another application may have it then.");
    confirm(question, confirmation)?;
    context.account()?.delete_eui(&context.credential_for(app_id).await?, app_id, eui).await?;
    let is_selected = |selection: &Selection| selection.app_id == *app_id && selection.app_eui == Some(eui);
    if context.files.selection()?.as_ref().is_some_and(is_selected) {
        context.files.set_selection(&Selection { app_id: app_id.clone(), app_eui: None })?;
    }
    context.output.message(format_args!("Removed EUI {eui} from application {app_id}"))
}
