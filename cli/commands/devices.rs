//! `airlock devices …`: the devices of an application.

pub(crate) mod args;
mod create;
mod get;
mod personalize;
mod simulate;
mod update;

use anyhow::Context;
use api::{downlink::Downlink, rest::handler::Device};
use client::{
    HexBytes,
    handler::{HandlerClient, Page},
};
use types::{AppEui, AppId, DevId};

use self::args::Devices;
pub(crate) use self::create::new_device;
use crate::{
    network::Network,
    terminal::{Confirmation, confirm, say, table},
};

/// Devices per page of a list.
const PAGE_SIZE: u32 = 500;

pub(crate) async fn run(
    command: Devices,
    (app_id, app_eui): (Option<AppId>, Option<AppEui>),
    network: &Network,
) -> anyhow::Result<()> {
    let app_id = network.application(app_id)?;
    let credential = network.credential_for(&app_id).await?;
    let handler = network.handler(credential.clone()).await?;
    match command {
        Devices::Register(register) => {
            let application = network.account()?.application(&credential, &app_id).await?;
            let app_eui = network.app_eui(&application, app_eui)?;
            let random = network.random.clone();
            let registration =
                create::Registration { handler, account: network.account()?, credential, app_id, app_eui, random };
            create::run(registration, register).await
        }
        Devices::List => list(&handler, &app_id).await,
        Devices::Info { dev_id, format } => get::run(&handler, &app_id, &dev_id, format).await,
        Devices::Personalize { dev_id, nwk_s_key, app_s_key } => {
            personalize::run(&handler, &app_id, &dev_id, (nwk_s_key, app_s_key), network.random.as_ref()).await
        }
        Devices::Set { dev_id, mut change } => {
            change.app_eui = app_eui;
            update::run(&handler, &app_id, &dev_id, *change).await
        }
        Devices::Simulate { dev_id, payload, port } => {
            let HexBytes(payload) = payload;
            simulate::run(&handler, (&app_id, dev_id), payload, port).await
        }
        Devices::Downlinks { dev_id, clear: false } => downlinks(&handler, &app_id, &dev_id).await,
        Devices::Downlinks { dev_id, clear: true } => {
            handler.clear_downlinks(&app_id, &dev_id).await?;
            say(format_args!("No downlinks wait for {dev_id}"))
        }
        Devices::Delete { dev_id, confirmation } => delete(&handler, &app_id, &dev_id, confirmation).await,
    }
}

async fn downlinks(handler: &HandlerClient, app_id: &AppId, dev_id: &DevId) -> anyhow::Result<()> {
    let queue = handler.list_downlinks(app_id, dev_id).await?;
    if queue.is_empty() {
        return say(format_args!("No downlinks wait for {dev_id}"));
    }
    let confirmed = |is_confirmed| if is_confirmed { "yes" } else { "no" };
    let row = |downlink: Downlink| {
        [
            downlink.port.to_string(),
            confirmed(downlink.confirmed).to_owned(),
            HexBytes(downlink.payload_raw).to_string(),
        ]
    };
    table(["Port", "Confirmed", "Payload"], queue.into_iter().map(row))
}

async fn list(handler: &HandlerClient, app_id: &AppId) -> anyhow::Result<()> {
    let mut devices: Vec<Device> = Vec::new();
    loop {
        let page = Page { limit: PAGE_SIZE, offset: u32::try_from(devices.len())? };
        let page = handler.list_devices(app_id, page).await?;
        let is_last = page.len() < PAGE_SIZE as usize;
        for device in page {
            devices.push(device.try_into().context("the handler sent an invalid device")?);
        }
        if is_last {
            break;
        }
    }
    if devices.is_empty() {
        return say(format_args!("Application {app_id} has no devices. Register one with `airlock devices register`"));
    }
    table(["DevID", "AppEUI", "DevEUI", "DevAddr", "Description"], devices.into_iter().map(row))
}

fn row(device: Device) -> [String; 5] {
    let lorawan = device.lorawan_device.unwrap_or_default();
    let dev_addr = lorawan.dev_addr.unwrap_or_default().to_hex();
    let dev_eui = if lorawan.dev_eui.is_zero() { "register on join".to_owned() } else { lorawan.dev_eui.to_hex() };
    [device.dev_id, lorawan.app_eui.to_hex(), dev_eui, dev_addr, device.description]
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

async fn delete(
    handler: &HandlerClient,
    app_id: &AppId,
    dev_id: &DevId,
    confirmation: Confirmation,
) -> anyhow::Result<()> {
    confirm(format_args!("Delete device {dev_id} of application {app_id}?"), confirmation)?;
    handler.delete_device(app_id, dev_id).await?;
    say(format_args!("Deleted device {dev_id}"))
}
