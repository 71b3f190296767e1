//! `airlock applications silence`: after which time devices count as silent.

use std::str::FromStr;

use client::silence::SilenceClient;
use serde_json::Value;
use types::{AppId, InvalidSilentAfter, SilentAfter};

use crate::{
    command_context::CommandContext,
    output::{Cell, Record},
};

/// A time, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(Option<SilentAfter>);

impl FromStr for Time {
    type Err = InvalidSilentAfter;

    fn from_str(text: &str) -> Result<Self, InvalidSilentAfter> {
        SilentAfter::parse_or_off(text).map(Self)
    }
}

/// Sets the time, or prints it if none is given.
pub(super) async fn run(context: &CommandContext, app_id: AppId, time: Option<Time>) -> anyhow::Result<()> {
    let credential = context.credential_for(&app_id).await?;
    let client = SilenceClient::connect(&context.announcement().await?, app_id.clone(), credential)?;
    let Some(Time(after)) = time else { return context.output.record(record(client.get().await?)) };
    client.set(after).await?;
    match after {
        Some(after) => context
            .output
            .message(format_args!("Devices of application {app_id} count as silent after {after} without an uplink")),
        None => context.output.message(format_args!("Devices of application {app_id} never count as silent")),
    }
}

fn record(after: Option<SilentAfter>) -> Record {
    let shown = match after {
        Some(after) => Cell::new(after.to_string(), after.as_secs()),
        None => Cell::new("never", Value::Null),
    };
    Record::new([(("silent_after_s", "Silent after"), shown)])
}
