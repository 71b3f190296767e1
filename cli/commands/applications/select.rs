//! `airlock applications select`: the application and EUI that other commands use by default.

use anyhow::{Context, bail};
use api::rest::account::Application;
use types::{AppEui, AppId};

use crate::{
    command_context::{CommandContext, session::Selection},
    exit::CommandError,
    terminal::{ask, sanitize, warn},
};

/// Selects an existing application, and one of its EUIs.
pub(super) async fn run(
    context: &CommandContext,
    app_id: Option<AppId>,
    app_eui: Option<AppEui>,
) -> anyhow::Result<()> {
    let application = match app_id {
        Some(app_id) => {
            let credential = context.credential_for(&app_id).await?;
            context.account()?.application(&credential, &app_id).await?
        }
        None => choose(context.account()?.applications(&context.credential().await?).await?)?,
    };
    if let Some(eui) = app_eui.filter(|eui| !application.euis.contains(eui)) {
        let id = &application.id;
        bail!(CommandError::not_found(format!(
            "application {id} has no EUI {eui}: `airlock applications info` shows its EUIs"
        )));
    }
    remember(context, application.id, app_eui)
}

pub(super) fn remember(context: &CommandContext, app_id: AppId, app_eui: Option<AppEui>) -> anyhow::Result<()> {
    let selection = Selection { app_id, app_eui };
    context.files.set_selection(&selection)?;
    match selection.app_eui {
        Some(eui) => context.output.message(format_args!("Selected application {} with EUI {eui}", selection.app_id)),
        None => context.output.message(format_args!("Selected application {}", selection.app_id)),
    }
}

/// The only application, or the one whose number is entered.
fn choose(mut applications: Vec<Application>) -> anyhow::Result<Application> {
    match applications.len() {
        0 => bail!("you have no applications: add one with `airlock applications add`"),
        1 => Ok(applications.remove(0)),
        count => {
            let rows = applications.iter().enumerate();
            for (row, application) in rows {
                warn(format_args!("{:>5}  {}  {}", row + 1, application.id, sanitize(&application.name)))?;
            }
            let answer = ask(&format!("Enter the number (1 - {count}) > "))?;
            let number = answer.parse::<usize>().ok().filter(|number| (1..=count).contains(number));
            let number = number.with_context(|| format!("enter a number from 1 to {count}, or give an AppID"))?;
            Ok(applications.remove(number - 1))
        }
    }
}
