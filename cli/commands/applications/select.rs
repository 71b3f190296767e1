//! `airlock applications select`: which application, and which of its EUIs, further commands mean.

use anyhow::{Context, bail};
use api::rest::account::Application;
use types::{AppEui, AppId, Clock};

use crate::{
    network::Network,
    session::Selection,
    terminal::{ask, say, table},
};

/// Selects an application that is there, and one of its EUIs.
pub(super) async fn run(
    network: &Network,
    clock: &dyn Clock,
    app_id: Option<AppId>,
    app_eui: Option<AppEui>,
) -> anyhow::Result<()> {
    let application = match app_id {
        Some(app_id) => {
            let credential = network.credential_for(&app_id, clock).await?;
            network.account()?.application(&credential, &app_id).await?
        }
        None => choose(network.account()?.applications(&network.credential(clock).await?).await?)?,
    };
    if let Some(eui) = app_eui.filter(|eui| !application.euis.contains(eui)) {
        bail!("{eui} is no EUI of application {}: look with `airlock applications info`", application.id);
    }
    remember(network, application.id, app_eui)
}

/// Selects an application.
pub(super) fn remember(network: &Network, app_id: AppId, app_eui: Option<AppEui>) -> anyhow::Result<()> {
    let selection = Selection { app_id, app_eui };
    network.files.select(&selection)?;
    match selection.app_eui {
        Some(eui) => say(format_args!("Selected application {} with EUI {eui}", selection.app_id)),
        None => say(format_args!("Selected application {}", selection.app_id)),
    }
}

/// The only one, or the one whose number is typed.
fn choose(mut applications: Vec<Application>) -> anyhow::Result<Application> {
    match applications.len() {
        0 => bail!("you have no applications: add one with `airlock applications add`"),
        1 => Ok(applications.remove(0)),
        count => {
            let rows = applications.iter().enumerate();
            table(
                ["", "ID", "Description"],
                rows.map(|(row, application)| {
                    [(row + 1).to_string(), application.id.to_string(), application.name.clone()]
                }),
            )?;
            let typed = ask(&format!("Enter the number (1 - {count}) > "))?;
            let number = typed.parse::<usize>().ok().filter(|number| (1..=count).contains(number));
            let number = number.with_context(|| format!("a number from 1 to {count} is needed, or an AppID"))?;
            Ok(applications.remove(number - 1))
        }
    }
}
