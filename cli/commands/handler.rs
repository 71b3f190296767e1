//! `airlock handler …`: manages what the handler keeps directly in the server's store.

pub(crate) mod args;

use anyhow::bail;
use handler::device::{Devices, Released};
use server::audit::AuditLog;
use types::{AppEui, ComponentId, DevEui};

use self::args::{Euis, Handler as Command};
use super::operator_audit;
use crate::{
    output::{Output, Record},
    serve::open_devices,
    settings::Settings,
    terminal::{Confirmation, confirm},
};

pub(crate) async fn run(command: Command, settings: Settings, output: &Output) -> anyhow::Result<()> {
    let audit = operator_audit(&settings)?;
    let brokers = settings.handler.network_brokers.clone();
    let (devices, mark) = open_devices(&settings).await?;
    let Command::Euis { command } = command;
    let done = match command {
        Euis::Show { app_eui, dev_eui } => show(&devices, app_eui, dev_eui, output).await,
        Euis::Release { app_eui, dev_eui, confirmation } => {
            release(&devices, ((app_eui, dev_eui), brokers), confirmation, &audit, output).await
        }
    };
    if let Some(mark) = mark {
        mark.advance().await?;
    }
    done
}

async fn show(devices: &Devices, app_eui: AppEui, dev_eui: DevEui, output: &Output) -> anyhow::Result<()> {
    match devices.holder(app_eui, dev_eui).await? {
        Some((app_id, dev_id)) => output.record(Record::new([
            (("app_id", "Application"), app_id.to_string().into()),
            (("dev_id", "Device"), dev_id.to_string().into()),
        ])),
        None => output.message("Nobody: any application may register a device with this pair"),
    }
}

async fn release(
    devices: &Devices,
    ((app_eui, dev_eui), brokers): ((AppEui, DevEui), Vec<ComponentId>),
    confirmation: Confirmation,
    audit: &AuditLog,
    output: &Output,
) -> anyhow::Result<()> {
    let Some((app_id, dev_id)) = devices.holder(app_eui, dev_eui).await? else {
        bail!("no device has AppEUI {app_eui} and DevEUI {dev_eui}");
    };
    confirm(format_args!("Delete device {dev_id} of application {app_id}?"), confirmation)?;
    let change = audit.change("EUIs released", &"operator", &format_args!("{app_id}:{dev_id}"))?;
    let released = Released { app_id, dev_id, app_eui, dev_eui, brokers };
    change.run(devices.release(&released)).await?;
    let Released { app_id, dev_id, brokers, .. } = released;
    output.message(format_args!(
        "Deleted device {dev_id} of application {app_id}: any application may register the pair now"
    ))?;
    if brokers.is_empty() {
        return Ok(());
    }
    output.message("The handler deletes it in the network servers within a minute, once it runs and reaches them")
}
