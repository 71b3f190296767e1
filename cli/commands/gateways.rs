//! `airlock gateways …`: gateways, and who works with them.

pub(crate) mod args;
mod edit;

use api::rest::account::{Gateway, GatewayUpdate, NewGateway};
use types::{Clock, Credential, GatewayId, Scope};

use self::args::{Collaborators, Gateways};
use super::{
    applications::{args::Sure, names},
    location::Location,
};
use crate::{
    network::Network,
    terminal::{confirm, fields, say, table},
};

/// Runs one of the commands.
pub(crate) async fn run(command: Gateways, network: &Network, clock: &dyn Clock) -> anyhow::Result<()> {
    match command {
        Gateways::Register { gateway_id, frequency_plan, location } => {
            register(network, clock, gateway_id, (frequency_plan, location)).await
        }
        Gateways::List => list(network, clock).await,
        Gateways::Info { gateway_id } => info(network, clock, gateway_id).await,
        Gateways::Edit { gateway_id, change } => {
            let credential = credential_for(network, clock, &gateway_id).await?;
            network.account()?.update_gateway(&credential, &gateway_id, &edit::update(*change)?).await?;
            say(format_args!("Updated gateway {gateway_id}"))
        }
        Gateways::Delete { gateway_id, sure } => delete(network, clock, gateway_id, sure).await,
        Gateways::Collaborators { command } => collaborators(command, network, clock).await,
    }
}

async fn credential_for(network: &Network, clock: &dyn Clock, gateway_id: &GatewayId) -> anyhow::Result<Credential> {
    network.credential_with(Scope::Gateway(gateway_id.clone()), clock).await
}

async fn register(
    network: &Network,
    clock: &dyn Clock,
    id: GatewayId,
    (frequency_plan, location): (String, Option<Location>),
) -> anyhow::Result<()> {
    let antenna_location = location.map(edit::location);
    let settings = GatewayUpdate { frequency_plan: Some(frequency_plan), antenna_location, ..GatewayUpdate::default() };
    let new = NewGateway { id, settings };
    let gateway = network.account()?.create_gateway(&network.credential(clock).await?, &new).await?;
    say(format_args!("Registered gateway {}", gateway.id))?;
    fields([("Access Key", gateway.key.map(String::from).unwrap_or_default())])
}

async fn list(network: &Network, clock: &dyn Clock) -> anyhow::Result<()> {
    let gateways = network.account()?.gateways(&network.credential(clock).await?).await?;
    if gateways.is_empty() {
        return say("You have no gateways; register one with `airlock gateways register`");
    }
    table(
        ["ID", "Activated", "Frequency Plan", "Coordinates"],
        gateways.into_iter().map(|gateway| {
            let place = coordinates(&gateway);
            [gateway.id.to_string(), yes(gateway.activated), gateway.frequency_plan, place]
        }),
    )
}

async fn info(network: &Network, clock: &dyn Clock, gateway_id: GatewayId) -> anyhow::Result<()> {
    let credential = credential_for(network, clock, &gateway_id).await?;
    let gateway = network.account()?.gateway(&credential, &gateway_id).await?;
    let place = coordinates(&gateway);
    fields([
        ("Gateway ID", gateway.id.to_string()),
        ("Activated", yes(gateway.activated)),
        ("Frequency Plan", gateway.frequency_plan),
        ("Coordinates", place),
        ("Location Public", yes(gateway.location_public)),
        ("Status Public", yes(gateway.status_public)),
        ("Owner Public", yes(gateway.owner_public)),
        ("Owner", gateway.owner.map(|owner| owner.username.to_string()).unwrap_or_default()),
        ("Auto Update", yes(gateway.auto_update)),
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
        collaborators.into_iter().map(|person| [person.username.to_string(), names(&person.rights)]),
    )
}

async fn delete(network: &Network, clock: &dyn Clock, gateway_id: GatewayId, sure: Sure) -> anyhow::Result<()> {
    if !confirm(format_args!("Delete gateway {gateway_id} for everybody?"), sure)? {
        return Ok(());
    }
    let credential = credential_for(network, clock, &gateway_id).await?;
    network.account()?.delete_gateway(&credential, &gateway_id).await?;
    say(format_args!("Deleted gateway {gateway_id}"))
}

async fn collaborators(command: Collaborators, network: &Network, clock: &dyn Clock) -> anyhow::Result<()> {
    let account = network.account()?;
    match command {
        Collaborators::Add { gateway_id, username, rights } => {
            let credential = credential_for(network, clock, &gateway_id).await?;
            let rights = if rights.is_empty() { account.rights(&credential, &gateway_id).await? } else { rights };
            account.set_collaborator(&credential, &gateway_id, &username, &rights).await?;
            say(format_args!("{username} may do this to gateway {gateway_id}: {}", names(&rights)))
        }
        Collaborators::Delete { gateway_id, username } => {
            let credential = credential_for(network, clock, &gateway_id).await?;
            account.delete_collaborator(&credential, &gateway_id, &username).await?;
            say(format_args!("{username} may do nothing to gateway {gateway_id} any more"))
        }
    }
}

fn coordinates(gateway: &Gateway) -> String {
    let Some(place) = gateway.antenna_location else { return String::new() };
    let (latitude, longitude) = (place.latitude.unwrap_or_default(), place.longitude.unwrap_or_default());
    format!("({latitude}, {longitude}, {})", place.altitude.unwrap_or_default())
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}
