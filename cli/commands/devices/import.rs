//! `airlock devices import`: registers and updates the devices of a file, after all of them were checked.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use api::rest::handler::Device;
use clap::Args;
use client::handler::HandlerClient;
use device_file::{Allowed, BadRow, Plan, Planned, Step, plan};
use futures::{StreamExt, stream};
use types::{AppEui, AppId, Kind, Kinded};

use super::{
    all,
    file::{FileFormat, read},
};
use crate::{
    exit::BadRows,
    network::Network,
    output::{Cell, Output, Table},
};

/// Maximum number of devices that are set at the same time.
const CALLS_MAX: usize = 8;

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// File, or - for standard input
    file: PathBuf,
    /// Format [default: what the file looks like]
    #[arg(long, value_enum)]
    format: Option<FileFormat>,
    /// Check the file and show what would be done
    #[arg(long)]
    dry_run: bool,
    /// Allow changes to EUIs and addresses of registered devices, which break the connection to running ones
    #[arg(long = "override")]
    is_override: bool,
}

pub(super) async fn run(
    network: &Network,
    handler: &HandlerClient,
    (app_id, app_eui): (AppId, AppEui),
    import: Import,
) -> anyhow::Result<()> {
    let rows = read(&import.file, import.format)?;
    let registered = all(handler, &app_id).await?;
    let allowed = if import.is_override { Allowed::All } else { Allowed::NoIdentity("use --override") };
    let plan = plan(rows, registered, (&app_id, app_eui), allowed);
    if !plan.bad.is_empty() {
        return refuse(&network.output, plan.bad);
    }
    if import.dry_run {
        let outcomes = plan.planned.iter().map(outcome);
        network.output.table(Table::new(COLUMNS, outcomes), "The file has no devices")?;
        return summary(&network.output, &plan, "Nothing was changed. These would be");
    }
    write(network, handler, (&app_id, &plan)).await?;
    if !network.output.is_table() {
        let outcomes = plan.planned.iter().map(outcome);
        network.output.table(Table::new(COLUMNS, outcomes), "The file has no devices")?;
    }
    summary(&network.output, &plan, "Devices")
}

const COLUMNS: [(&str, &str); 3] = [("row", "Row"), ("dev_id", "DevID"), ("outcome", "Outcome")];

fn outcome(planned: &Planned) -> [Cell; 3] {
    let number = Cell::new(planned.number.to_string(), planned.number);
    [number, planned.device.dev_id.as_str().into(), planned.step.name().into()]
}

fn refuse(output: &Output, bad: Vec<BadRow>) -> anyhow::Result<()> {
    let count = bad.len();
    let row =
        |bad: BadRow| [Cell::new(bad.number.to_string(), bad.number), bad.field.name.into(), bad.field.reason.into()];
    let columns = [("row", "Row"), ("field", "Field"), ("reason", "Reason")];
    output.table(Table::new(columns, bad.into_iter().map(row)), "")?;
    Err(BadRows(count).into())
}

/// Sets the devices that differ, some at the same time. After the first failure no further one is begun.
async fn write(network: &Network, handler: &HandlerClient, (app_id, plan): (&AppId, &Plan)) -> anyhow::Result<()> {
    let different = plan.planned.iter().filter(|planned| planned.step != Step::Unchanged);
    let calls = different.map(|planned| async move { (planned, set(handler, app_id, planned).await) });
    let mut calls = stream::iter(calls).buffer_unordered(CALLS_MAX);
    let (mut done, mut failed) = (0_usize, None);
    while failed.is_none() {
        match calls.next().await {
            Some((_, Ok(()))) => done += 1,
            Some((planned, Err(error))) => failed = Some((planned, error)),
            None => return Ok(()),
        }
    }
    drop(calls);
    let Some((planned, error)) = failed else { return Ok(()) };
    network.output.message(format_args!("Set {done} devices before an error; import again to go on after them"))?;
    if is_exhausted(&error) {
        bail!("the handler takes no more calls for now: import again later, it goes on after what is done ({error})");
    }
    Err(error).with_context(|| format!("cannot set the device {} in row {}", planned.device.dev_id, planned.number))
}

fn is_exhausted(error: &anyhow::Error) -> bool {
    error.downcast_ref::<client::Error>().is_some_and(|error| error.kind() == Kind::Exhausted)
}

/// A registered device is read just before: its list lacks the frames that it has counted.
async fn set(handler: &HandlerClient, app_id: &AppId, planned: &Planned) -> anyhow::Result<()> {
    let device = match planned.step {
        Step::Updated => {
            let stored = handler.get_device(app_id, &planned.device.dev_id.parse()?).await?;
            let renewed = planned.renew(Device::try_from(stored)?);
            renewed.map_err(|field| anyhow!("{}: {}", field.name, field.reason))?
        }
        Step::Created | Step::Unchanged => planned.device.clone(),
    };
    Ok(handler.set_device(device.into()).await?)
}

fn summary(output: &Output, plan: &Plan, what: &str) -> anyhow::Result<()> {
    let [created, updated, unchanged] = [Step::Created, Step::Updated, Step::Unchanged].map(|step| plan.count(step));
    output.message(format_args!("{what}: {created} created, {updated} updated, {unchanged} unchanged"))
}
