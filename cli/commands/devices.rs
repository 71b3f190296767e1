//! `airlock devices …`: the devices of an application.

pub(crate) mod args;
mod create;
mod export;
mod file;
mod get;
mod import;
mod moves;
mod personalize;
mod simulate;
mod update;

use anyhow::Context;
use api::{downlink::Downlink, rest::handler::Device};
use client::{
    HexBytes,
    handler::{HandlerClient, Page},
};
use serde_json::Value;
use types::{AppEui, AppId, DevId};

use self::args::Devices;
use crate::{
    command_context::CommandContext,
    output::{Cell, Table},
    terminal::confirm,
};

/// Devices per page of a list.
const PAGE_SIZE: u32 = 500;

pub(crate) async fn run(
    command: Devices,
    (app_id, app_eui): (Option<AppId>, Option<AppEui>),
    context: &CommandContext,
) -> anyhow::Result<()> {
    let app_id = context.application(app_id)?;
    let credential = context.credential_for(&app_id).await?;
    let handler = context.handler(credential.clone()).await?;
    match command {
        Devices::Register(register) => {
            let application = context.account()?.application(&credential, &app_id).await?;
            let app_eui = context.app_eui(&application, app_eui)?;
            let registration = create::Registration { context, handler, credential, app_id, app_eui };
            create::run(registration, register).await
        }
        Devices::Import(import) => {
            let application = context.account()?.application(&credential, &app_id).await?;
            let app_eui = context.app_eui(&application, app_eui)?;
            import::run(context, &handler, (app_id, app_eui), import).await
        }
        Devices::Export(export) => export::run(context, &handler, &app_id, export).await,
        Devices::List => list(context, &handler, &app_id).await,
        Devices::Info { dev_id, format } => {
            let (device, lorawan) = read(&handler, &app_id, &dev_id).await?;
            let lorawan = get::complete(&handler, (&app_id, &dev_id), lorawan).await;
            context.output.record(get::record((device, lorawan), format, &context.output))
        }
        Devices::Personalize { dev_id, nwk_s_key, app_s_key } => {
            personalize::run(context, &handler, (&app_id, &dev_id), (nwk_s_key, app_s_key)).await
        }
        Devices::Set { dev_id, mut change } => {
            change.app_eui = app_eui;
            update::run(&handler, &app_id, &dev_id, *change).await?;
            context.output.message(format_args!("Updated device {dev_id}"))
        }
        Devices::Simulate(simulate) => simulate::run(context, &handler, &app_id, simulate).await,
        Devices::Downlinks { dev_id, clear: false, .. } => downlinks(context, &handler, &app_id, &dev_id).await,
        Devices::Downlinks { dev_id, clear: true, confirmation } => {
            confirm(format_args!("Remove the downlinks that wait for {dev_id}?"), confirmation)?;
            handler.clear_downlinks(&app_id, &dev_id).await?;
            context.output.message(format_args!("No downlinks wait for {dev_id}"))
        }
        Devices::Move(moves) => moves::run(context, &app_id, moves).await,
        Devices::Delete { dev_id, confirmation } => {
            confirm(format_args!("Delete device {dev_id} of application {app_id}?"), confirmation)?;
            handler.delete_device(&app_id, &dev_id).await?;
            context.output.message(format_args!("Deleted device {dev_id}"))
        }
    }
}

async fn downlinks(
    context: &CommandContext,
    handler: &HandlerClient,
    app_id: &AppId,
    dev_id: &DevId,
) -> anyhow::Result<()> {
    let queue = handler.list_downlinks(app_id, dev_id).await?;
    let row = |downlink: Downlink| {
        [downlink.port.into(), downlink.confirmed.into(), HexBytes(downlink.payload_raw).to_string().into()]
    };
    let columns = [("port", "Port"), ("confirmed", "Confirmed"), ("payload", "Payload")];
    let table = Table::new(columns, queue.into_iter().map(row));
    context.output.table(table, format_args!("No downlinks wait for {dev_id}"))
}

async fn list(context: &CommandContext, handler: &HandlerClient, app_id: &AppId) -> anyhow::Result<()> {
    let columns = [
        ("dev_id", "DevID"),
        ("app_eui", "AppEUI"),
        ("dev_eui", "DevEUI"),
        ("dev_addr", "DevAddr"),
        ("description", "Description"),
    ];
    let table = Table::new(columns, all(handler, app_id).await?.into_iter().map(row));
    let hint = "Register one with `airlock devices register`";
    context.output.table(table, format_args!("Application {app_id} has no devices. {hint}"))
}

/// All devices of an application, read page by page.
async fn all(handler: &HandlerClient, app_id: &AppId) -> anyhow::Result<Vec<Device>> {
    let mut devices: Vec<Device> = Vec::new();
    loop {
        let page = Page { limit: PAGE_SIZE, offset: u32::try_from(devices.len())? };
        let page = handler.list_devices(app_id, page).await?;
        let is_last = page.len() < PAGE_SIZE as usize;
        for device in page {
            devices.push(device.try_into().context("the handler sent an invalid device")?);
        }
        if is_last {
            return Ok(devices);
        }
    }
}

fn row(device: Device) -> [Cell; 5] {
    let lorawan = device.lorawan_device.unwrap_or_default();
    let dev_eui = match lorawan.dev_eui.is_zero() {
        true => Cell::new("register on join", Value::Null),
        false => lorawan.dev_eui.to_hex().into(),
    };
    let dev_addr = lorawan.dev_addr.filter(|address| !address.is_zero()).map(|address| address.to_hex());
    [device.dev_id.into(), lorawan.app_eui.to_hex().into(), dev_eui, dev_addr.into(), device.description.into()]
}

/// The device and its LoRaWAN part.
async fn read(
    handler: &HandlerClient,
    app_id: &AppId,
    dev_id: &DevId,
) -> anyhow::Result<(Device, api::rest::handler::LorawanDevice)> {
    let mut device: Device = handler.get_device(app_id, dev_id).await?.try_into()?;
    let lorawan = device.lorawan_device.take().context("the handler sent a device without its LoRaWAN part")?;
    Ok((device, lorawan))
}
