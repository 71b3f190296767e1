//! `airlock gateways …`: gateways and their collaborators.

pub(crate) mod args;
mod update;

use api::rest::account::{Gateway, GatewayUpdate, NewGateway};
use types::{Credential, GatewayId, Scope};

use self::args::{GatewayCollaborators, Gateways};
use super::{applications::join_rights, yes_no};
use crate::{
    location::Location,
    network::Network,
    terminal::{Confirmation, confirm, fields, say, table},
};

pub(crate) async fn run(command: Gateways, network: &Network) -> anyhow::Result<()> {
    match command {
        Gateways::Register { gateway_id, frequency_plan, location } => {
            create(network, gateway_id, frequency_plan, location).await
        }
        Gateways::List => list(network).await,
        Gateways::Info { gateway_id } => get(network, gateway_id).await,
        Gateways::Edit { gateway_id, change } => {
            let credential = credential_for(network, &gateway_id).await?;
            network.account()?.update_gateway(&credential, &gateway_id, &update::update(*change)?).await?;
            say(format_args!("Updated gateway {gateway_id}"))
        }
        Gateways::Delete { gateway_id, confirmation } => delete(network, gateway_id, confirmation).await,
        Gateways::Collaborators { command } => collaborators(command, network).await,
    }
}

async fn credential_for(network: &Network, gateway_id: &GatewayId) -> anyhow::Result<Credential> {
    network.credential_with(Scope::Gateway(gateway_id.clone())).await
}

async fn create(
    network: &Network,
    id: GatewayId,
    frequency_plan: String,
    location: Option<Location>,
) -> anyhow::Result<()> {
    let antenna_location = location.map(update::antenna_location);
    let settings = GatewayUpdate { frequency_plan: Some(frequency_plan), antenna_location, ..GatewayUpdate::default() };
    let new = NewGateway { id, settings };
    let gateway = network.account()?.create_gateway(&network.credential().await?, &new).await?;
    say(format_args!("Registered gateway {}", gateway.id))?;
    fields([("Access Key", gateway.key.map(String::from).unwrap_or_default())])
}

async fn list(network: &Network) -> anyhow::Result<()> {
    let gateways = network.account()?.gateways(&network.credential().await?).await?;
    if gateways.is_empty() {
        return say("You have no gateways. Register one with `airlock gateways register`");
    }
    table(
        ["ID", "Activated", "Frequency Plan", "Coordinates"],
        gateways.into_iter().map(|gateway| {
            let coordinates = coordinates(&gateway);
            [gateway.id.to_string(), yes_no(gateway.activated), gateway.frequency_plan, coordinates]
        }),
    )
}

async fn get(network: &Network, gateway_id: GatewayId) -> anyhow::Result<()> {
    let credential = credential_for(network, &gateway_id).await?;
    let gateway = network.account()?.gateway(&credential, &gateway_id).await?;
    let coordinates = coordinates(&gateway);
    fields([
        ("Gateway ID", gateway.id.to_string()),
        ("Activated", yes_no(gateway.activated)),
        ("Frequency Plan", gateway.frequency_plan),
        ("Coordinates", coordinates),
        ("Location Public", yes_no(gateway.location_public)),
        ("Status Public", yes_no(gateway.status_public)),
        ("Owner Public", yes_no(gateway.owner_public)),
        ("Owner", gateway.owner.map(|owner| owner.username.to_string()).unwrap_or_default()),
        ("Auto Update", yes_no(gateway.auto_update)),
        ("Router", gateway.router.map(|router| router.id.to_string()).unwrap_or_default()),
        ("Access Key", gateway.key.map(String::from).unwrap_or_default()),
    ])?;
    let attributes = gateway.attributes.into_iter().map(<[String; 2]>::from).collect::<Vec<_>>();
    if !attributes.is_empty() {
        table(["Attribute", "Value"], attributes)?;
    }
    let collaborators = gateway.collaborators.unwrap_or_default();
    table(
        ["Collaborator", "Rights"],
        collaborators.into_iter().map(|person| [person.username.to_string(), join_rights(&person.rights)]),
    )
}

async fn delete(network: &Network, gateway_id: GatewayId, confirmation: Confirmation) -> anyhow::Result<()> {
    confirm(format_args!("Delete gateway {gateway_id} for all collaborators?"), confirmation)?;
    let credential = credential_for(network, &gateway_id).await?;
    network.account()?.delete_gateway(&credential, &gateway_id).await?;
    say(format_args!("Deleted gateway {gateway_id}"))
}

async fn collaborators(command: GatewayCollaborators, network: &Network) -> anyhow::Result<()> {
    let account = network.account()?;
    match command {
        GatewayCollaborators::Add { gateway_id, username, rights } => {
            let credential = credential_for(network, &gateway_id).await?;
            let rights = if rights.is_empty() { account.rights(&credential, &gateway_id).await? } else { rights };
            account.set_collaborator(&credential, &gateway_id, &username, &rights).await?;
            say(format_args!("{username} has these rights to gateway {gateway_id}: {}", join_rights(&rights)))
        }
        GatewayCollaborators::Delete { gateway_id, username } => {
            let credential = credential_for(network, &gateway_id).await?;
            account.delete_collaborator(&credential, &gateway_id, &username).await?;
            say(format_args!("{username} has no rights to gateway {gateway_id} any more"))
        }
    }
}

fn coordinates(gateway: &Gateway) -> String {
    let Some(location) = gateway.antenna_location else { return String::new() };
    let (latitude, longitude) = (location.latitude.unwrap_or_default(), location.longitude.unwrap_or_default());
    format!("({latitude}, {longitude}, {})", location.altitude.unwrap_or_default())
}
