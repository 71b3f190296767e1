//! A trial of an application's payload functions before they are saved, with somebody at the terminal.

use anyhow::Context;
use api::handler::{Application, DryDownlinkMessage, DryUplinkMessage, LogEntry};
use client::{Payload, handler::HandlerClient};

use crate::terminal::{ask, inert, say};

/// Asks whether to try the functions, and with what; a function that fails is an error.
pub(super) async fn offer(handler: &HandlerClient, application: &Application, encoder: bool) -> anyhow::Result<()> {
    let wanted = ask("Do you want to test the payload functions? (Y/n) > ")?.to_lowercase();
    match wanted.as_str() {
        "" | "y" | "yes" if encoder => downlink(handler, application).await,
        "" | "y" | "yes" => uplink(handler, application).await,
        _ => Ok(()),
    }
}

async fn uplink(handler: &HandlerClient, application: &Application) -> anyhow::Result<()> {
    let Payload(payload) = ask("Payload (hexadecimal): ")?.parse()?;
    let uplink = DryUplinkMessage { payload, app: Some(application.clone()), port: port()? };
    let result = handler.dry_uplink(uplink).await.context("the test failed, so nothing was changed")?;
    show(&result.logs)?;
    say(format_args!("Fields: {}", inert(&result.fields)))?;
    say(if result.valid { "The message is valid" } else { "The validator refuses the message" })
}

async fn downlink(handler: &HandlerClient, application: &Application) -> anyhow::Result<()> {
    let fields = ask("Fields (JSON): ")?;
    let downlink = DryDownlinkMessage { payload: Vec::new(), fields, app: Some(application.clone()), port: port()? };
    let result = handler.dry_downlink(downlink).await.context("the test failed, so nothing was changed")?;
    show(&result.logs)?;
    say(format_args!("Payload: {}", hex::encode_upper(result.payload)))
}

fn port() -> anyhow::Result<u32> {
    let typed = ask("Port [1]: ")?;
    if typed.is_empty() { Ok(1) } else { typed.parse().context("a port is a number from 1 to 255") }
}

fn show(logs: &[LogEntry]) -> anyhow::Result<()> {
    logs.iter().try_for_each(|entry| say(format_args!("{}: {}", entry.function, inert(&entry.fields.join(" ")))))
}
