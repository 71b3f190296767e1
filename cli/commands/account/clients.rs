//! `airlock account clients …`: OAuth clients.

use account::{Account, OperatorClient};
use api::rest::account::Client;
use types::ClientId;

use super::{
    args::{Clients, NewClient},
    next_page,
};
use crate::{
    output::{Cell, Output, Table},
    terminal::confirm,
};

pub(super) async fn run(command: Clients, account: &Account, output: &Output) -> anyhow::Result<()> {
    match command {
        Clients::Register(new) => create(account, new, output).await,
        Clients::List { undecided: true, .. } => print(output, account.clients_undecided().await?),
        Clients::List { after, .. } => list(account, after, output).await,
        Clients::Approve { client_id } => {
            let approved = account.approve_client(&client_id).await?;
            output.message(format_args!("Approved client {client_id}:"))?;
            print(output, vec![approved])
        }
        Clients::Reject { client_id } => {
            account.reject_client(&client_id).await?;
            output.message(format_args!("Rejected client {client_id}"))
        }
        Clients::Remove { client_id, confirmation } => {
            confirm(format_args!("Delete client {client_id}? Its id cannot be used again."), confirmation)?;
            account.remove_client(&client_id).await?;
            output.message(format_args!("Deleted client {client_id}; its id cannot be used again"))
        }
    }
}

/// Prints the secret alone on the last line, so that scripts can use it.
async fn create(account: &Account, new: NewClient, output: &Output) -> anyhow::Result<()> {
    let NewClient { client_id: id, description, redirect_uri, scope, first_party, public, legacy } = new;
    let redirect_uris = redirect_uri;
    let own = OperatorClient { id: id.clone(), description, scope, redirect_uris, first_party, public, legacy };
    match account.register_client(own).await? {
        Some(secret) => {
            output.message(format_args!("Registered client {id}. This is its secret, which cannot be shown again:"))?;
            output.value("secret", secret.expose())
        }
        None => output.message(format_args!("Registered public client {id}, which has no secret")),
    }
}

async fn list(account: &Account, after: Option<ClientId>, output: &Output) -> anyhow::Result<()> {
    let clients = account.list_clients(after.as_ref()).await?;
    let next_page = clients.last().and_then(|last| next_page("clients list", clients.len(), last.name.as_str()));
    print(output, clients)?;
    next_page.map_or(Ok(()), |next_page| output.message(next_page))
}

fn print(output: &Output, clients: Vec<Client>) -> anyhow::Result<()> {
    let row = |client: Client| {
        let (name, decision) = (client.name.to_string().into(), decision(&client).into());
        let scope = Cell::list(&client.scope, " ");
        [name, decision, client.official.into(), scope, client.uri.into(), client.description.into()]
    };
    let columns = [
        ("id", "ID"),
        ("decision", "Decision"),
        ("first_party", "First party"),
        ("scope", "Scope"),
        ("redirect_uri", "Redirect URI"),
        ("description", "Description"),
    ];
    output.table(Table::new(columns, clients.into_iter().map(row)), "There are no such clients")
}

fn decision(client: &Client) -> &'static str {
    match (client.accepted, client.rejected) {
        (true, _) => "approved",
        (false, true) => "rejected",
        (false, false) => "undecided",
    }
}
