//! `airlock applications collaborators …`: who else may use an application.

use super::{super::join_rights, args::ApplicationCollaborators};
use crate::command_context::CommandContext;

pub(super) async fn run(command: ApplicationCollaborators, context: &CommandContext) -> anyhow::Result<()> {
    let account = context.account()?;
    match command {
        ApplicationCollaborators::Add { app_id, username, rights } => {
            let credential = context.credential_for(&app_id).await?;
            let rights = if rights.is_empty() { account.rights(&credential, &app_id).await? } else { rights };
            account.set_collaborator(&credential, &app_id, &username, &rights).await?;
            context
                .output
                .message(format_args!("{username} has these rights to application {app_id}: {}", join_rights(&rights)))
        }
        ApplicationCollaborators::Delete { app_id, username } => {
            let credential = context.credential_for(&app_id).await?;
            account.delete_collaborator(&credential, &app_id, &username).await?;
            context.output.message(format_args!("{username} has no rights to application {app_id} any more"))
        }
    }
}
