//! `airlock applications collaborators …`: who else may work with an application.

use types::Clock;

use super::{args::Collaborators, names};
use crate::{network::Network, terminal::say};

/// Runs one of the commands.
pub(super) async fn run(command: Collaborators, network: &Network, clock: &dyn Clock) -> anyhow::Result<()> {
    let account = network.account()?;
    match command {
        Collaborators::Add { app_id, username, rights } => {
            let credential = network.credential_for(&app_id, clock).await?;
            let rights = if rights.is_empty() { account.rights(&credential, &app_id).await? } else { rights };
            account.set_collaborator(&credential, &app_id, &username, &rights).await?;
            say(format_args!("{username} may do this to application {app_id}: {}", names(&rights)))
        }
        Collaborators::Delete { app_id, username } => {
            let credential = network.credential_for(&app_id, clock).await?;
            account.delete_collaborator(&credential, &app_id, &username).await?;
            say(format_args!("{username} may do nothing to application {app_id} any more"))
        }
    }
}
