//! `airlock account clients …`: OAuth clients.

use account::{Account, OperatorClient};
use api::rest::account::Client;
use types::ClientId;

use super::{
    args::{Clients, NewClient},
    next_page,
};
use crate::{
    commands::yes_no,
    terminal::{say, table},
};

pub(super) async fn run(command: Clients, account: &Account) -> anyhow::Result<()> {
    match command {
        Clients::Register(new) => create(account, new).await,
        Clients::List { undecided: true, .. } => print(account.clients_undecided().await?),
        Clients::List { after, .. } => list(account, after).await,
        Clients::Approve { client_id } => {
            let approved = account.approve_client(&client_id).await?;
            say(format_args!("Approved client {client_id}:"))?;
            print(vec![approved])
        }
        Clients::Reject { client_id } => {
            account.reject_client(&client_id).await?;
            say(format_args!("Rejected client {client_id}"))
        }
        Clients::Remove { client_id } => {
            account.remove_client(&client_id).await?;
            say(format_args!("Deleted client {client_id}; its id cannot be used again"))
        }
    }
}

/// Prints the secret alone on the last line, so that scripts can use it.
async fn create(account: &Account, new: NewClient) -> anyhow::Result<()> {
    let NewClient { client_id: id, description, redirect_uri, scope, first_party, public, legacy } = new;
    let redirect_uris = redirect_uri;
    let own = OperatorClient { id: id.clone(), description, scope, redirect_uris, first_party, public, legacy };
    match account.register_client(own).await? {
        Some(secret) => {
            say(format_args!("Registered client {id}. This is its secret, which cannot be shown again:"))?;
            say(secret.expose())
        }
        None => say(format_args!("Registered public client {id}, which has no secret")),
    }
}

async fn list(account: &Account, after: Option<ClientId>) -> anyhow::Result<()> {
    let clients = account.list_clients(after.as_ref()).await?;
    let next_page = clients.last().and_then(|last| next_page("clients list", clients.len(), last.name.as_str()));
    print(clients)?;
    next_page.map_or(Ok(()), say)
}

fn print(clients: Vec<Client>) -> anyhow::Result<()> {
    table(
        ["Id", "Decision", "First party", "Scope", "Redirect URI", "Description"],
        clients.into_iter().map(|client| {
            let scope = client.scope.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            let decision = decision(&client).to_owned();
            [client.name.to_string(), decision, yes_no(client.official), scope, client.uri, client.description]
        }),
    )
}

fn decision(client: &Client) -> &'static str {
    match (client.accepted, client.rejected) {
        (true, _) => "approved",
        (false, true) => "rejected",
        (false, false) => "undecided",
    }
}
