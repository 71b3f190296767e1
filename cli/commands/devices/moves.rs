//! `airlock devices move`: moves devices to another application.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::bail;
use api::rest::handler::Device;
use clap::Args;
use client::handler::HandlerClient;
use futures::{StreamExt, stream};
use types::{AppId, DevId, DevicePath, Kind, Kinded};

use super::all;
use crate::{
    command_context::CommandContext,
    exit::CommandError,
    output::Table,
    terminal::{Confirmation, confirm},
    values::completion,
};

/// Maximum number of devices that are moved at the same time.
const CALLS_MAX: usize = 8;

#[derive(Debug, Args)]
pub(crate) struct MoveDevices {
    /// Ids of the devices
    #[arg(required_unless_present = "matching", value_name = "DEV_ID", add = completion::devices())]
    dev_ids: Vec<DevId>,
    /// Application that gets them
    #[arg(long, value_name = "APP_ID", add = completion::applications())]
    to: AppId,
    /// Id of a single device there [default: the one that it has]
    #[arg(long, value_name = "DEV_ID")]
    to_dev_id: Option<DevId>,
    /// Move all devices whose id, DevEUI or description contains this
    #[arg(long = "match", value_name = "TEXT", conflicts_with = "dev_ids")]
    matching: Option<String>,
    #[command(flatten)]
    confirmation: Confirmation,
}

/// Moves the devices, some at the same time. Those that cannot be moved are listed.
pub(super) async fn run(context: &CommandContext, app_id: &AppId, moves: MoveDevices) -> anyhow::Result<()> {
    if moves.to == *app_id {
        let text = format!("the devices are in application {app_id} already: name another one with --to");
        bail!(CommandError::invalid(text));
    }
    let handler = context.handler(context.credential_for_all(&[app_id, &moves.to]).await?).await?;
    let dev_ids = match &moves.matching {
        Some(text) => matching(&handler, app_id, text).await?,
        None => {
            let mut named = HashSet::new();
            moves.dev_ids.into_iter().filter(|dev_id| named.insert(dev_id.clone())).collect()
        }
    };
    let (to, confirmation) = (&moves.to, moves.confirmation);
    match (dev_ids.as_slice(), moves.to_dev_id) {
        ([], _) => context.output.message(format_args!("Application {app_id} has no such device")),
        ([dev_id], to_dev_id) => {
            confirm(format_args!("Move device {dev_id} of application {app_id} to application {to}?"), confirmation)?;
            let to_dev_id = to_dev_id.as_ref().unwrap_or(dev_id);
            let moved = handler
                .move_device(DevicePath { app_id, dev_id }, DevicePath { app_id: to, dev_id: to_dev_id })
                .await?;
            let name = if to_dev_id == dev_id { String::new() } else { format!(" as {to_dev_id}") };
            context.output.message(format_args!("Moved device {dev_id} to application {to}{name}"))?;
            dropped(context, moved.dropped_downlinks.into())
        }
        (_, Some(_)) => bail!(CommandError::invalid("--to-dev-id is for one device: leave it out, or name one")),
        (several, None) => {
            let count = several.len();
            confirm(format_args!("Move {count} devices of application {app_id} to application {to}?"), confirmation)?;
            move_several(context, &handler, (app_id, to), several).await
        }
    }
}

/// The devices that contain a text.
async fn matching(handler: &HandlerClient, app_id: &AppId, text: &str) -> anyhow::Result<Vec<DevId>> {
    let text = text.to_lowercase();
    let contains = |device: &Device| {
        let dev_eui = device.lorawan_device.as_ref().map(|lorawan| lorawan.dev_eui.to_hex()).unwrap_or_default();
        [&device.dev_id, &device.description, &dev_eui].iter().any(|field| field.to_lowercase().contains(&text))
    };
    let found = all(handler, app_id).await?.into_iter().filter(contains);
    Ok(found.map(|device| device.dev_id.parse::<DevId>()).collect::<Result<Vec<_>, _>>()?)
}

async fn move_several(
    context: &CommandContext,
    handler: &HandlerClient,
    (app_id, to): (&AppId, &AppId),
    dev_ids: &[DevId],
) -> anyhow::Result<()> {
    let is_over = &AtomicBool::new(false);
    let steps = dev_ids.iter().map(|dev_id| async move {
        if is_over.load(Ordering::Relaxed) {
            return (dev_id, Err("not begun".to_owned()));
        }
        let moved = handler.move_device(DevicePath { app_id, dev_id }, DevicePath { app_id: to, dev_id }).await;
        if moved.as_ref().is_err_and(|error| concerns_all(error.kind())) {
            is_over.store(true, Ordering::Relaxed);
        }
        (dev_id, moved.map_err(|error| error.to_string()))
    });
    let outcomes: Vec<_> = stream::iter(steps).buffered(CALLS_MAX).collect().await;
    let moved = || outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref().ok());
    let failed: Vec<_> =
        outcomes.iter().filter_map(|(dev_id, outcome)| Some((*dev_id, outcome.as_ref().err()?))).collect();
    let row = |(dev_id, reason): &(&DevId, &String)| [dev_id.as_str().into(), reason.as_str().into()];
    if !failed.is_empty() {
        context.output.table(Table::new([("dev_id", "DevID"), ("reason", "Reason")], failed.iter().map(row)), "")?;
    }
    context.output.message(format_args!(
        "Moved {} of {} devices to application {to}",
        moved().count(),
        dev_ids.len()
    ))?;
    dropped(context, moved().map(|moved| u64::from(moved.dropped_downlinks)).sum())?;
    // A call that was not answered may have moved its device.
    let known = if is_over.load(Ordering::Relaxed) { ", as far as is known" } else { "" };
    match failed.len() {
        0 => Ok(()),
        1 => bail!("1 device was not moved{known}"),
        count => bail!("{count} devices were not moved{known}"),
    }
}

/// Returns true if the same would become of all other devices.
fn concerns_all(kind: Kind) -> bool {
    matches!(kind, Kind::Exhausted | Kind::Full | Kind::Unauthenticated | Kind::Unavailable | Kind::Timeout)
}

/// Says how many downlinks waited for what was moved.
fn dropped(context: &CommandContext, downlinks: u64) -> anyhow::Result<()> {
    match downlinks {
        0 => Ok(()),
        1 => context.output.message("Dropped 1 downlink that waited"),
        count => context.output.message(format_args!("Dropped {count} downlinks that waited")),
    }
}
