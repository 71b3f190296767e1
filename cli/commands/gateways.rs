//! `airlock gateways …`: gateways and their collaborators.

pub(crate) mod args;
mod update;

use api::rest::account::{Gateway, GatewayUpdate, Named, NewGateway};
use serde_json::{Value, json};
use types::{Credential, GatewayId, Kind, Kinded, Scope};

use self::args::{GatewayCollaborators, Gateways};
use super::{collaborators_table, join_rights};
use crate::{
    command_context::CommandContext,
    output::{Cell, Record, Table},
    terminal::{Confirmation, confirm},
    values::location::Location,
};

pub(crate) async fn run(command: Gateways, context: &CommandContext) -> anyhow::Result<()> {
    match command {
        Gateways::Register { gateway_id, frequency_plan, location } => {
            create(context, gateway_id, frequency_plan, location).await
        }
        Gateways::List => list(context).await,
        Gateways::Info { gateway_id } => get(context, gateway_id).await,
        Gateways::Edit { gateway_id, change } => {
            let credential = credential_for(context, &gateway_id).await?;
            context.account()?.update_gateway(&credential, &gateway_id, &update::update(*change)?).await?;
            context.output.message(format_args!("Updated gateway {gateway_id}"))
        }
        Gateways::Delete { gateway_id, confirmation } => delete(context, gateway_id, confirmation).await,
        Gateways::Collaborators { command } => collaborators(command, context).await,
    }
}

async fn credential_for(context: &CommandContext, gateway_id: &GatewayId) -> anyhow::Result<Credential> {
    context.credential_with(Scope::Gateway(gateway_id.clone())).await
}

fn lacks_rights(error: &anyhow::Error) -> bool {
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<client::Error>()).map(Kinded::kind);
    matches!(kind, Some(Kind::Denied | Kind::NotFound))
}

async fn create(
    context: &CommandContext,
    id: GatewayId,
    frequency_plan: String,
    location: Option<Location>,
) -> anyhow::Result<()> {
    let antenna_location = location.map(update::antenna_location);
    let router = context.settings().router_id.clone().map(Named::Id);
    let settings =
        GatewayUpdate { frequency_plan: Some(frequency_plan), antenna_location, router, ..GatewayUpdate::default() };
    let new = NewGateway { id, settings };
    let gateway = context.account()?.create_gateway(&context.credential().await?, &new).await?;
    context.output.message(format_args!("Registered gateway {}", gateway.id))?;
    context.output.record(Record::new([
        (("id", "Gateway ID"), gateway.id.to_string().into()),
        (("key", "Access Key"), gateway.key.map(String::from).into()),
    ]))
}

async fn list(context: &CommandContext) -> anyhow::Result<()> {
    let gateways = context.account()?.gateways(&context.credential().await?).await?;
    let row = |gateway: Gateway| {
        let coordinates = coordinates(&gateway);
        [gateway.id.to_string().into(), gateway.activated.into(), gateway.frequency_plan.into(), coordinates]
    };
    let columns = [
        ("id", "ID"),
        ("activated", "Activated"),
        ("frequency_plan", "Frequency Plan"),
        ("antenna_location", "Coordinates"),
    ];
    let table = Table::new(columns, gateways.into_iter().map(row));
    context.output.table(table, "You have no gateways. Register one with `airlock gateways register`")
}

async fn get(context: &CommandContext, gateway_id: GatewayId) -> anyhow::Result<()> {
    // Without rights to the gateway, the account service grants no token for it, but shows its public part.
    let credential = match credential_for(context, &gateway_id).await {
        Err(error) if lacks_rights(&error) => context.credential().await?,
        credential => credential?,
    };
    let gateway = context.account()?.gateway(&credential, &gateway_id).await?;
    let coordinates = coordinates(&gateway);
    let record = Record::new([
        (("id", "Gateway ID"), gateway.id.to_string().into()),
        (("activated", "Activated"), gateway.activated.into()),
        (("frequency_plan", "Frequency Plan"), gateway.frequency_plan.into()),
        (("antenna_location", "Coordinates"), coordinates),
        (("location_public", "Location Public"), gateway.location_public.into()),
        (("status_public", "Status Public"), gateway.status_public.into()),
        (("owner_public", "Owner Public"), gateway.owner_public.into()),
        (("owner", "Owner"), gateway.owner.map(|owner| owner.username.to_string()).into()),
        (("auto_update", "Auto Update"), gateway.auto_update.into()),
        (("router", "Router"), gateway.router.map(|router| router.id.to_string()).into()),
        (("key", "Access Key"), gateway.key.map(String::from).into()),
    ]);
    let attributes = gateway.attributes.into_iter().map(<[String; 2]>::from).map(|row| row.map(Cell::from));
    let attributes = Table::new([("name", "Attribute"), ("value", "Value")], attributes);
    let people = collaborators_table(gateway.collaborators.unwrap_or_default());
    context.output.record(record.with("attributes", attributes).with("collaborators", people))
}

async fn delete(context: &CommandContext, gateway_id: GatewayId, confirmation: Confirmation) -> anyhow::Result<()> {
    confirm(format_args!("Delete gateway {gateway_id} for all collaborators?"), confirmation)?;
    let credential = credential_for(context, &gateway_id).await?;
    context.account()?.delete_gateway(&credential, &gateway_id).await?;
    context.output.message(format_args!("Deleted gateway {gateway_id}"))
}

async fn collaborators(command: GatewayCollaborators, context: &CommandContext) -> anyhow::Result<()> {
    let account = context.account()?;
    match command {
        GatewayCollaborators::Add { gateway_id, username, rights } => {
            let credential = credential_for(context, &gateway_id).await?;
            let rights = if rights.is_empty() { account.rights(&credential, &gateway_id).await? } else { rights };
            account.set_collaborator(&credential, &gateway_id, &username, &rights).await?;
            context
                .output
                .message(format_args!("{username} has these rights to gateway {gateway_id}: {}", join_rights(&rights)))
        }
        GatewayCollaborators::Delete { gateway_id, username } => {
            let credential = credential_for(context, &gateway_id).await?;
            account.delete_collaborator(&credential, &gateway_id, &username).await?;
            context.output.message(format_args!("{username} has no rights to gateway {gateway_id} any more"))
        }
    }
}

fn coordinates(gateway: &Gateway) -> Cell {
    let Some(location) = &gateway.antenna_location else { return Cell::new("", Value::Null) };
    let (latitude, longitude) = (location.latitude.unwrap_or_default(), location.longitude.unwrap_or_default());
    let text = format!("({latitude}, {longitude}, {})", location.altitude.unwrap_or_default());
    Cell::new(text, json!(location))
}
