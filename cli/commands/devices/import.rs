//! `airlock devices import`: registers and updates the devices of a file, after all of them were checked.

mod elsewhere;

use std::{collections::HashSet, path::PathBuf};

use anyhow::{Context, bail};
use api::rest::handler::Device;
use clap::Args;
use client::handler::HandlerClient;
use device_file::{Allowed, BadField, BadRow, Plan, Planned, Step, plan};
use futures::{StreamExt, stream};
use types::{AppEui, AppId, DevId, IdError, Kind, Kinded};

use super::{
    all,
    file::{FileFormat, read},
};
use crate::{
    command_context::CommandContext,
    exit::BadRows,
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
    context: &CommandContext,
    handler: &HandlerClient,
    (app_id, app_eui): (AppId, AppEui),
    import: Import,
) -> anyhow::Result<()> {
    let rows = read(&import.file, import.format)?;
    let registered = all(handler, &app_id).await?;
    let allowed = if import.is_override { Allowed::All } else { Allowed::NoIdentity("use --override") };
    let mut plan = plan(rows, registered, (&app_id, app_eui), allowed);
    if !plan.bad.is_empty() {
        let count = plan.bad.len();
        list_bad(&context.output, plan.bad)?;
        return Err(BadRows::Found(count).into());
    }
    let refused = match import.dry_run {
        true => elsewhere::taken(context, &app_id, &plan).await?,
        false => write(context, handler, (&app_id, &plan)).await?,
    };
    let numbers: HashSet<usize> = refused.iter().map(|bad| bad.number).collect();
    plan.planned.retain(|planned| !numbers.contains(&planned.number));
    // For a program, there is one table.
    let lists_planned = if context.output.is_table() { import.dry_run } else { refused.is_empty() };
    if lists_planned {
        let outcomes = plan.planned.iter().map(outcome);
        context.output.table(Table::new(COLUMNS, outcomes), "The file has no devices")?;
    }
    let count = refused.len();
    if count > 0 {
        list_bad(&context.output, refused)?;
    }
    summary(&context.output, &plan, import.dry_run)?;
    match (count, import.dry_run) {
        (0, _) => Ok(()),
        (_, true) => Err(BadRows::WouldBeRefused(count).into()),
        (_, false) => Err(BadRows::Refused(count).into()),
    }
}

const COLUMNS: [(&str, &str); 3] = [("row", "Row"), ("dev_id", "DevID"), ("outcome", "Outcome")];

fn outcome(planned: &Planned) -> [Cell; 3] {
    let number = Cell::new(planned.number.to_string(), planned.number);
    [number, planned.device.dev_id.as_str().into(), planned.step.name().into()]
}

fn list_bad(output: &Output, bad: Vec<BadRow>) -> anyhow::Result<()> {
    let row =
        |bad: BadRow| [Cell::new(bad.number.to_string(), bad.number), bad.field.name.into(), bad.field.reason.into()];
    let columns = [("row", "Row"), ("field", "Field"), ("reason", "Reason")];
    output.table(Table::new(columns, bad.into_iter().map(row)), "")
}

/// Sets the devices that differ, some at the same time, and returns the rows that were refused. After the first failure
/// of another kind no further one is begun.
async fn write(
    context: &CommandContext,
    handler: &HandlerClient,
    (app_id, plan): (&AppId, &Plan),
) -> anyhow::Result<Vec<BadRow>> {
    let different = plan.planned.iter().filter(|planned| planned.step != Step::Unchanged);
    let calls = different.map(|planned| async move { (planned, set(handler, app_id, planned).await) });
    let mut calls = stream::iter(calls).buffer_unordered(CALLS_MAX);
    let (mut done, mut failed, mut refused) = (0_usize, None, Vec::new());
    while failed.is_none() {
        match calls.next().await {
            Some((_, Ok(()))) => done += 1,
            Some((planned, Err(NotSet::Row(field)))) => refused.push(BadRow { number: planned.number, field }),
            Some((planned, Err(NotSet::All(error)))) => failed = Some((planned, error)),
            None => break,
        }
    }
    drop(calls);
    refused.sort_by_key(|bad| bad.number);
    let Some((planned, error)) = failed else { return Ok(refused) };
    if !refused.is_empty() {
        list_bad(&context.output, refused)?;
    }
    context.output.message(format_args!("Set {done} devices before an error; import again to go on after them"))?;
    if is_exhausted(&error) {
        bail!("the handler takes no more calls for now: import again later, it goes on after what is done ({error})");
    }
    Err(error).with_context(|| format!("cannot set the device {} in row {}", planned.device.dev_id, planned.number))
}

fn is_exhausted(error: &anyhow::Error) -> bool {
    error.downcast_ref::<client::Error>().is_some_and(|error| error.kind() == Kind::Exhausted)
}

/// Reasons why a device was not set.
enum NotSet {
    /// It is about this row.
    Row(BadField),
    /// The same would become of the others.
    All(anyhow::Error),
}

impl From<client::Error> for NotSet {
    fn from(error: client::Error) -> Self {
        match error.kind() {
            // The plan has found those that are in this application.
            Kind::AlreadyExists => Self::Row(BadField {
                name: "dev_eui",
                reason: format!("{error}: if it is in another application, move it from there, or delete it there"),
            }),
            Kind::Invalid | Kind::Conflict | Kind::TooLarge => {
                Self::Row(BadField { name: "", reason: error.to_string() })
            }
            _ => Self::All(error.into()),
        }
    }
}

/// A registered device is read just before: its list lacks the frames that it has counted.
async fn set(handler: &HandlerClient, app_id: &AppId, planned: &Planned) -> Result<(), NotSet> {
    let device = match planned.step {
        Step::Updated => {
            let dev_id: DevId = planned.device.dev_id.parse().map_err(|error: IdError| NotSet::All(error.into()))?;
            let stored = handler.get_device(app_id, &dev_id).await?;
            let stored = Device::try_from(stored).map_err(|error| NotSet::All(error.into()))?;
            planned.renew(stored).map_err(NotSet::Row)?
        }
        Step::Created | Step::Unchanged => planned.device.clone(),
    };
    Ok(handler.set_device(device.into()).await?)
}

fn summary(output: &Output, plan: &Plan, is_dry_run: bool) -> anyhow::Result<()> {
    let [created, updated, unchanged] = [Step::Created, Step::Updated, Step::Unchanged].map(|step| plan.count(step));
    let what = match (is_dry_run, created + updated) {
        (false, _) => "Devices",
        (true, 0) => "Nothing was changed, and an import has nothing to change",
        (true, _) => "Nothing was changed. Without --dry-run",
    };
    output.message(format_args!("{what}: {created} created, {updated} updated, {unchanged} unchanged"))
}
