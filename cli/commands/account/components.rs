//! `airlock account components …`: network components.

use account::Account;
use api::rest::account::Component;
use serde_json::Value;
use types::ComponentId;

use super::{args::Components, next_page};
use crate::output::{Cell, Output, Table};

pub(super) async fn run(command: Components, account: &Account, output: &Output) -> anyhow::Result<()> {
    match command {
        // Only the token, so that scripts can use it.
        Components::Token { service, id } => {
            output.value("token", account.component_token(service, &id).await?.expose())
        }
        Components::Revoke { id } => {
            account.revoke_component_tokens(&id).await?;
            output.message(format_args!("Revoked all tokens of component {id}"))
        }
        Components::List { after } => list(account, after, output).await,
    }
}

async fn list(account: &Account, after: Option<ComponentId>, output: &Output) -> anyhow::Result<()> {
    let components = account.list_components(after.as_ref()).await?;
    let next_page = components.last().and_then(|last| next_page("components list", components.len(), last.id.as_str()));
    let row = |component: Component| {
        let people = component.collaborators.unwrap_or_default();
        let names: Vec<_> = people.into_iter().map(|person| person.username).collect();
        let collaborators = match names.is_empty() {
            true => Cell::new("none: owned by the operator", Value::Array(Vec::new())),
            false => Cell::list(&names, ", "),
        };
        let created = output.time(component.created);
        [component.id.to_string().into(), component.service.to_string().into(), created, collaborators]
    };
    let columns = [("id", "ID"), ("type", "Type"), ("created", "Created"), ("collaborators", "Collaborators")];
    output.table(Table::new(columns, components.into_iter().map(row)), "There are no components")?;
    next_page.map_or(Ok(()), |next_page| output.message(next_page))
}
