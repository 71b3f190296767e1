//! `airlock account components …`: network components.

use account::Account;
use types::ComponentId;

use super::{args::Components, next_page};
use crate::terminal::{say, table};

pub(super) async fn run(command: Components, account: &Account) -> anyhow::Result<()> {
    match command {
        // Only the token, so that scripts can use it.
        Components::Token { service, id } => say(account.component_token(service, &id).await?.expose()),
        Components::Revoke { id } => {
            account.revoke_component_tokens(&id).await?;
            say(format_args!("Revoked all tokens of component {id}"))
        }
        Components::List { after } => list(account, after).await,
    }
}

async fn list(account: &Account, after: Option<ComponentId>) -> anyhow::Result<()> {
    let components = account.list_components(after.as_ref()).await?;
    let next_page = components.last().and_then(|last| next_page("components list", components.len(), last.id.as_str()));
    table(
        ["Type", "Id", "Created", "Collaborators"],
        components.into_iter().map(|component| {
            let people = component.collaborators.unwrap_or_default();
            let names = people.iter().map(|person| person.username.to_string()).collect::<Vec<_>>().join(", ");
            let collaborators = if names.is_empty() { "none: owned by the operator".to_owned() } else { names };
            [component.service.to_string(), component.id.to_string(), component.created.to_string(), collaborators]
        }),
    )?;
    next_page.map_or(Ok(()), say)
}
