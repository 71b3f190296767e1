//! `airlock account components …`: components of the server's own store.

use account::Account;
use types::ComponentId;

use super::{args::Components, more};
use crate::terminal::{say, table};

/// Runs one of the commands.
pub(super) async fn run(command: Components, account: &Account) -> anyhow::Result<()> {
    match command {
        // The token and nothing else, so that a shell can use it.
        Components::Token { service, id } => say(account.component_token(service, &id).await?.expose()),
        Components::List { after } => list(account, after).await,
    }
}

async fn list(account: &Account, after: Option<ComponentId>) -> anyhow::Result<()> {
    let components = account.list_components(after.as_ref()).await?;
    let more = components.last().and_then(|last| more("components list", components.len(), last.id.as_str()));
    table(
        ["Type", "Id", "Created", "Collaborators"],
        components.into_iter().map(|component| {
            let people = component.collaborators.unwrap_or_default();
            let names = people.iter().map(|person| person.username.to_string()).collect::<Vec<_>>().join(", ");
            let whose = if names.is_empty() { "none: the operator's own".to_owned() } else { names };
            [component.service.to_string(), component.id.to_string(), component.created.to_string(), whose]
        }),
    )?;
    more.map_or(Ok(()), say)
}
