//! `airlock handler …`: manages what the handler keeps directly in the server's store.

pub(crate) mod args;

use anyhow::bail;
use handler::device::Devices;
use server::audit::AuditLog;
use types::{AppEui, DevEui};

use self::args::{Euis, Handler as Command};
use super::operator_audit;
use crate::{serve::open_devices, settings::Settings, terminal::say};

pub(crate) async fn run(command: Command, settings: Settings) -> anyhow::Result<()> {
    let audit = operator_audit(&settings)?;
    let (devices, mark) = open_devices(&settings).await?;
    let Command::Euis { command } = command;
    let done = match command {
        Euis::Show { app_eui, dev_eui } => show(&devices, app_eui, dev_eui).await,
        Euis::Release { app_eui, dev_eui } => release(&devices, app_eui, dev_eui, &audit).await,
    };
    if let Some(mark) = mark {
        mark.advance().await?;
    }
    done
}

async fn show(devices: &Devices, app_eui: AppEui, dev_eui: DevEui) -> anyhow::Result<()> {
    match devices.holder(app_eui, dev_eui).await? {
        Some((app_id, dev_id)) => say(format_args!("Application: {app_id}\nDevice: {dev_id}")),
        None => say("Nobody: any application may register a device with this pair"),
    }
}

async fn release(devices: &Devices, app_eui: AppEui, dev_eui: DevEui, audit: &AuditLog) -> anyhow::Result<()> {
    let Some((app_id, dev_id)) = devices.holder(app_eui, dev_eui).await? else {
        bail!("no device has AppEUI {app_eui} and DevEUI {dev_eui}");
    };
    let change = audit.change("EUIs released", &"operator", &format_args!("{app_id}:{dev_id}"))?;
    change.run(devices.delete(&app_id, &dev_id)).await?;
    say(format_args!("Deleted device {dev_id} of application {app_id}: any application may register the pair now"))
}
