//! `airlock applications pf …`: the payload functions of the selected application.

use std::{
    io::{self, IsTerminal},
    path::Path,
};

use anyhow::ensure;
use api::handler::Application;
use runtime::Dialect;
use types::Clock;

use super::{args::PayloadFormat, dry_run};
use crate::{
    network::Network,
    script,
    terminal::{can_ask, inert, lines, say},
};

/// Prints the functions, as a script that could be given back.
pub(super) async fn show(network: &Network, clock: &dyn Clock) -> anyhow::Result<()> {
    let app_id = network.application(None)?;
    let handler = network.handler(network.credential_for(&app_id, clock).await?).await?;
    let application = handler.get_application(&app_id).await?;
    if !matches!(application.payload_format.as_str(), "" | "custom") {
        say(format_args!("// payload format: {}", inert(&application.payload_format)))?;
    }
    for (name, text) in [
        ("decoder", &application.decoder),
        ("converter", &application.converter),
        ("validator", &application.validator),
        ("encoder", &application.encoder),
    ] {
        match (text.is_empty(), io::stdout().is_terminal()) {
            (true, _) => say(format_args!("// no {name}"))?,
            (false, false) => say(format_args!("// {name}\n{text}\n"))?,
            // Others may have written it, and could steer the terminal.
            (false, true) => say(format_args!("// {name}\n{}\n", lines(text)))?,
        }
    }
    Ok(())
}

/// Sets one function or the format, after a trial when somebody is there to want one.
pub(super) async fn set(
    network: &Network,
    clock: &dyn Clock,
    what: PayloadFormat,
    file: &Path,
    skip_test: bool,
) -> anyhow::Result<()> {
    let app_id = network.application(None)?;
    let text = if format(what).is_none() { read_function(file)? } else { String::new() };
    let handler = network.handler(network.credential_for(&app_id, clock).await?).await?;
    let mut application = handler.get_application(&app_id).await?;
    match format(what) {
        Some(format) => format.clone_into(&mut application.payload_format),
        None => set_text(&mut application, what, text),
    }
    if !skip_test && can_ask() && format(what).is_none() {
        dry_run::offer(&handler, &application, what == PayloadFormat::Encoder).await?;
    }
    handler.set_application(application).await?;
    say(format_args!("Updated application {app_id}"))
}

/// The word for it in applications; none for what is a function.
fn format(what: PayloadFormat) -> Option<&'static str> {
    match what {
        PayloadFormat::Custom => Some("custom"),
        PayloadFormat::Ts013 => Some(Dialect::Ts013.name()),
        PayloadFormat::V2 => Some(Dialect::V2.name()),
        PayloadFormat::ChirpStack3 => Some(Dialect::ChirpStack3.name()),
        PayloadFormat::CayenneLpp => Some("cayennelpp"),
        PayloadFormat::Decoder | PayloadFormat::Converter | PayloadFormat::Validator | PayloadFormat::Encoder => None,
    }
}

/// Sets the text of a function. It counts from now on: whoever sets one does not want Cayenne LPP any more.
fn set_text(application: &mut Application, what: PayloadFormat, text: String) {
    if Dialect::from_name(&application.payload_format).is_none() {
        "custom".clone_into(&mut application.payload_format);
    }
    match what {
        PayloadFormat::Decoder => application.decoder = text,
        PayloadFormat::Converter => application.converter = text,
        PayloadFormat::Validator => application.validator = text,
        _ => application.encoder = text,
    }
}

/// An empty file takes a function away; an empty standard input is more likely a command before ours that failed.
fn read_function(file: &Path) -> anyhow::Result<String> {
    let text = script::read(file)?;
    let hint = "standard input is empty, so nothing was changed: to take a function away, give an empty file";
    ensure!(!script::is_input(file) || !text.trim().is_empty(), "{hint}");
    Ok(text)
}
