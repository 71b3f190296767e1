//! Offers a dry run of an application's payload functions before they are saved.

use anyhow::Context;
use api::handler::{Application, DryDownlinkMessage, DryUplinkMessage, DryUplinkResult, LogEntry};
use client::{HexBytes, handler::HandlerClient};

use crate::terminal::{ask, sanitize, say};

const FAILED: &str = "the test failed, so nothing was changed";

/// Asks whether to test the functions, and with which message; an error when a function fails.
pub(super) async fn offer(handler: &HandlerClient, application: &Application, is_encoder: bool) -> anyhow::Result<()> {
    let answer = ask("Do you want to test the payload functions? (Y/n) > ")?.to_lowercase();
    match answer.as_str() {
        "" | "y" | "yes" if is_encoder => downlink(handler, application).await,
        "" | "y" | "yes" => uplink(handler, application).await,
        _ => Ok(()),
    }
}

async fn uplink(handler: &HandlerClient, application: &Application) -> anyhow::Result<()> {
    let HexBytes(payload) = ask("Payload (hexadecimal): ")?.parse()?;
    let uplink = DryUplinkMessage { payload, app: Some(application.clone()), port: ask_port()? };
    print_uplink(&handler.dry_uplink(uplink).await.context(FAILED)?)
}

/// Prints what the functions made of an uplink, and what that cost.
pub(crate) fn print_uplink(result: &DryUplinkResult) -> anyhow::Result<()> {
    print_logs(&result.logs)?;
    say(format_args!("Fields: {}", sanitize(&result.fields)))?;
    say(if result.valid { "The message is valid" } else { "The message is not valid" })?;
    say(format_args!("Cost: {} fuel, {} µs", result.fuel, result.microseconds))
}

async fn downlink(handler: &HandlerClient, application: &Application) -> anyhow::Result<()> {
    let fields = ask("Fields (JSON): ")?;
    let downlink =
        DryDownlinkMessage { payload: Vec::new(), fields, app: Some(application.clone()), port: ask_port()? };
    let result = handler.dry_downlink(downlink).await.context(FAILED)?;
    print_logs(&result.logs)?;
    say(format_args!("Payload: {}", hex::encode_upper(result.payload)))
}

fn ask_port() -> anyhow::Result<u32> {
    let answer = ask("Port [1]: ")?;
    if answer.is_empty() { Ok(1) } else { answer.parse().context("a port is a number from 1 to 255") }
}

fn print_logs(logs: &[LogEntry]) -> anyhow::Result<()> {
    logs.iter().try_for_each(|entry| say(format_args!("{}: {}", entry.function, sanitize(&entry.fields.join(" ")))))
}
