//! `airlock devices import`: registers and updates the devices of a file, after all of them were checked.

mod plan;

use std::path::PathBuf;

use anyhow::{Context, bail};
use api::rest::handler::Device;
use clap::Args;
use client::handler::HandlerClient;
use futures::{StreamExt, stream};
use types::{AppEui, AppId, Kind, Kinded};

use self::plan::{BadRow, Planned, Step, plan};
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
    let planned = match plan(rows, registered, (&app_id, app_eui), import.is_override) {
        Ok(planned) => planned,
        Err(bad) => return refuse(&network.output, bad),
    };
    if import.dry_run {
        let outcomes = planned.iter().map(|planned| outcome(planned, planned.step.name()));
        network.output.table(Table::new(COLUMNS, outcomes), "The file has no devices")?;
        return summary(&network.output, &planned, "Nothing was changed. These would be");
    }
    write(network, handler, &planned).await?;
    if !network.output.is_table() {
        let outcomes = planned.iter().map(|planned| outcome(planned, planned.step.name()));
        network.output.table(Table::new(COLUMNS, outcomes), "The file has no devices")?;
    }
    summary(&network.output, &planned, "Devices")
}

const COLUMNS: [(&str, &str); 3] = [("row", "Row"), ("dev_id", "DevID"), ("outcome", "Outcome")];

fn outcome(planned: &Planned, outcome: &str) -> [Cell; 3] {
    let number = Cell::new(planned.number.to_string(), planned.number);
    [number, planned.device.dev_id.as_str().into(), outcome.into()]
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
async fn write(network: &Network, handler: &HandlerClient, planned: &[Planned]) -> anyhow::Result<()> {
    let different = planned.iter().filter(|planned| planned.step != Step::Unchanged);
    let calls = different.map(|planned| async move { (planned, set(handler, &planned.device).await) });
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
    if error.kind() == Kind::Exhausted {
        bail!("the handler takes no more calls for now: import again later, it goes on after what is done ({error})");
    }
    Err(error).with_context(|| format!("cannot set the device {} in row {}", planned.device.dev_id, planned.number))
}

async fn set(handler: &HandlerClient, device: &Device) -> client::Result<()> {
    handler.set_device(device.clone().into()).await
}

fn summary(output: &Output, planned: &[Planned], what: &str) -> anyhow::Result<()> {
    let count = |step: Step| planned.iter().filter(|planned| planned.step == step).count();
    let (created, updated, unchanged) = (count(Step::Created), count(Step::Updated), count(Step::Unchanged));
    output.message(format_args!("{what}: {created} created, {updated} updated, {unchanged} unchanged"))
}
