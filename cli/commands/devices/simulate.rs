//! `airlock devices simulate`: sends an uplink as if a device had sent it, and shows what the functions made of it.

mod batch;

use std::path::PathBuf;

use anyhow::bail;
use api::handler::{DryUplinkResult, SimulatedUplinkMessage, SimulatedUplinkResult};
use clap::Args;
use client::{HexBytes, handler::HandlerClient};
use types::{AppId, DevId};

use crate::{
    command_context::CommandContext,
    commands::applications::dry_run::{print_logs, print_uplink},
    terminal::lines,
    values::completion,
};

/// The uplink, or a file of uplinks.
#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// Id of the device
    #[arg(required_unless_present = "batch", add = completion::devices())]
    dev_id: Option<DevId>,
    /// Payload in hexadecimal
    #[arg(required_unless_present = "batch")]
    payload: Option<HexBytes>,
    /// Port
    #[arg(long, default_value_t = 1)]
    port: u32,
    /// Send the uplinks of this file instead, or of standard input if it is -
    ///
    /// Each line is a JSON object with the members dev_id, port and payload, in base64. Lists those that fail.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dev_id", "payload", "port"])]
    batch: Option<PathBuf>,
}

/// Sends the uplink, or those of the file.
pub(super) async fn run(
    context: &CommandContext,
    handler: &HandlerClient,
    app_id: &AppId,
    simulate: Simulate,
) -> anyhow::Result<()> {
    match simulate {
        Simulate { batch: Some(file), .. } => batch::run(context, handler, app_id, &file).await,
        Simulate { dev_id: Some(dev_id), payload: Some(HexBytes(payload)), port, .. } => {
            one(context, handler, (app_id, dev_id), payload, port).await
        }
        Simulate { .. } => bail!("name a device and a payload, or a file with --batch"),
    }
}

/// Sends the uplink. An error if its functions fail, although it is published then, too.
async fn one(
    context: &CommandContext,
    handler: &HandlerClient,
    (app_id, dev_id): (&AppId, DevId),
    payload: Vec<u8>,
    port: u32,
) -> anyhow::Result<()> {
    let (app_id, id) = (app_id.to_string(), dev_id.to_string());
    let uplink = SimulatedUplinkMessage { app_id, dev_id: id, payload: payload.clone(), port };
    let result = handler.simulate_uplink(uplink).await?;
    context.output.message(format_args!("Simulated uplink of {dev_id} sent"))?;
    let Some(outcome) = result.outcome else { return context.output.message(why_missing(&result)) };
    if !outcome.failure.is_empty() {
        print_logs(&context.output, &outcome.logs)?;
        bail!("the uplink was published without fields: {}", lines(&outcome.failure));
    }
    let published = DryUplinkResult {
        payload,
        fields: if outcome.fields.is_empty() { "null".to_owned() } else { outcome.fields },
        // It is not printed.
        normalized: String::new(),
        // Other uplinks are refused.
        valid: true,
        logs: outcome.logs,
        warnings: outcome.warnings,
        fuel: result.fuel,
        microseconds: result.microseconds,
    };
    print_uplink(&context.output, &published)
}

/// Explains why the handler did not return fields. Those of v2, and older ones of ours, return neither fields nor cost.
fn why_missing(result: &SimulatedUplinkResult) -> &'static str {
    match (result.fuel, result.microseconds) {
        (0, 0) => "The handler did not return what it was decoded to",
        _ => {
            "What it was decoded to is shown to those who have the right `settings`, while the account service confirms it"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_handler_that_says_what_an_uplink_cost_keeps_its_fields_back() {
        let said = |fuel| why_missing(&SimulatedUplinkResult { fuel, ..SimulatedUplinkResult::default() });
        assert!(said(7).contains("the right `settings`"));
        assert!(!said(0).contains("right") && said(0).contains("did not return"));
    }
}
