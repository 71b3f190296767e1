//! `airlock devices …`: the devices of an application.

use anyhow::{Context, bail};
use api::{
    handler::SimulatedUplinkMessage,
    rest::handler::{Device, LorawanDevice},
};
use client::{
    Payload,
    handler::{HandlerClient, Page},
    random_eui, random_key,
};
use types::{AppEui, AppId, AppKey, Clock, DevEui, DevId, Kind, Kinded, Random, Timestamp};

use crate::{
    args::Devices,
    network::Network,
    terminal::{fields, say, table},
};

/// How many devices one call asks for.
const PAGE: u32 = 500;

/// Runs one of the commands.
pub(crate) async fn run(
    command: Devices,
    app_id: Option<AppId>,
    network: &Network,
    clock: &dyn Clock,
    random: &dyn Random,
) -> anyhow::Result<()> {
    let app_id = network.application(app_id)?;
    let credential = network.credential_for(&app_id, clock).await?;
    match command {
        Devices::Register { dev_id, dev_eui, app_key } => {
            let application = network.account()?.application(&credential, &app_id).await?;
            let app_eui = application.euis.first().copied().unwrap_or_default();
            let device = new_device(app_id, dev_id, app_eui, dev_eui.unwrap_or_else(|| random_eui(random)));
            let app_key = app_key.unwrap_or_else(|| AppKey::new(random_key(random)));
            register(&network.handler(credential).await?, device, app_key).await
        }
        Devices::List => list(&network.handler(credential).await?, &app_id).await,
        Devices::Info { dev_id } => info(&network.handler(credential).await?, &app_id, &dev_id).await,
        Devices::Simulate { dev_id, payload, port } => {
            let Payload(payload) = payload;
            let uplink = SimulatedUplinkMessage { app_id: app_id.into(), dev_id: dev_id.into(), payload, port };
            network.handler(credential).await?.simulate_uplink(uplink).await?;
            say("Simulated uplink sent")
        }
    }
}

/// A device with nothing but its names.
pub(crate) fn new_device(app_id: AppId, dev_id: DevId, app_eui: AppEui, dev_eui: DevEui) -> Device {
    let (app_id, dev_id) = (String::from(app_id), String::from(dev_id));
    let lorawan = LorawanDevice {
        app_eui,
        dev_eui,
        app_id: app_id.clone(),
        dev_id: dev_id.clone(),
        uses32_bit_f_cnt: true,
        ..LorawanDevice::default()
    };
    Device { app_id, dev_id, lorawan_device: Some(lorawan), ..Device::default() }
}

async fn register(handler: &HandlerClient, mut device: Device, app_key: AppKey) -> anyhow::Result<()> {
    match handler.get_device(&device.app_id.parse()?, &device.dev_id.parse()?).await {
        Ok(_) => bail!("device {} is registered already: choose another id", device.dev_id),
        Err(error) if error.kind() == Kind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let (dev_id, app_key_text) = (device.dev_id.clone(), app_key.to_hex());
    let lorawan = device.lorawan_device.as_mut().context("a new device is a LoRaWAN device")?;
    let (app_eui, dev_eui) = (lorawan.app_eui.to_hex(), lorawan.dev_eui.to_hex());
    lorawan.app_key = Some(app_key);
    handler.set_device(device.into()).await?;
    say(format_args!("Registered device {dev_id}"))?;
    fields([("AppEUI", app_eui), ("DevEUI", dev_eui), ("AppKey", app_key_text)])
}

async fn list(handler: &HandlerClient, app_id: &AppId) -> anyhow::Result<()> {
    let mut devices: Vec<Device> = Vec::new();
    loop {
        let page = Page { limit: PAGE, offset: u32::try_from(devices.len())? };
        let part = handler.list_devices(app_id, page).await?;
        let last = part.len() < PAGE as usize;
        for device in part {
            devices.push(device.try_into().context("the handler sent a device that cannot be read")?);
        }
        if last {
            break;
        }
    }
    if devices.is_empty() {
        return say(format_args!("Application {app_id} has no devices; register one with `airlock devices register`"));
    }
    table(["DevID", "AppEUI", "DevEUI", "DevAddr", "Description"], devices.into_iter().map(row))
}

fn row(device: Device) -> [String; 5] {
    let lorawan = device.lorawan_device.unwrap_or_default();
    let dev_addr = lorawan.dev_addr.unwrap_or_default().to_hex();
    [device.dev_id, lorawan.app_eui.to_hex(), lorawan.dev_eui.to_hex(), dev_addr, device.description]
}

async fn info(handler: &HandlerClient, app_id: &AppId, dev_id: &DevId) -> anyhow::Result<()> {
    let device: Device = handler.get_device(app_id, dev_id).await?.try_into()?;
    let lorawan = device.lorawan_device.unwrap_or_default();
    let last_seen = match lorawan.last_seen {
        0 => "never".to_owned(),
        nanos => Timestamp::from_nanos(nanos).to_string(),
    };
    fields([
        ("Application ID", device.app_id),
        ("Device ID", device.dev_id),
        ("Description", device.description),
        ("Last Seen", last_seen),
        ("AppEUI", lorawan.app_eui.to_hex()),
        ("DevEUI", lorawan.dev_eui.to_hex()),
        ("DevAddr", lorawan.dev_addr.unwrap_or_default().to_hex()),
        ("AppKey", lorawan.app_key.unwrap_or_default().to_hex()),
        ("AppSKey", lorawan.app_s_key.unwrap_or_default().to_hex()),
        ("NwkSKey", lorawan.nwk_s_key.unwrap_or_default().to_hex()),
        ("FCntUp", lorawan.f_cnt_up.to_string()),
        ("FCntDown", lorawan.f_cnt_down.to_string()),
        ("Options", options(lorawan.disable_f_cnt_check, lorawan.uses32_bit_f_cnt)),
    ])
}

fn options(disable_f_cnt_check: bool, uses32_bit_f_cnt: bool) -> String {
    let check = if disable_f_cnt_check { "FCntCheckDisabled" } else { "FCntCheckEnabled" };
    let width = if uses32_bit_f_cnt { "32BitFCnt" } else { "16BitFCnt" };
    format!("{check}, {width}")
}
