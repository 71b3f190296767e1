//! `airlock applications pf …`: the payload functions of the selected application.

use std::{
    io::{self, IsTerminal},
    path::Path,
};

use anyhow::ensure;
use api::handler::Application;
use runtime::Dialect;

use super::{args::FunctionOrFormat, dry_run};
use crate::{
    network::Network,
    script,
    terminal::{can_ask, lines, sanitize, say},
};

/// Prints the functions as one script.
pub(super) async fn get(network: &Network) -> anyhow::Result<()> {
    let app_id = network.application(None)?;
    let application = network.handler_for(&app_id).await?.get_application(&app_id).await?;
    if !matches!(application.payload_format.as_str(), "" | "custom") {
        say(format_args!("// payload format: {}", sanitize(&application.payload_format)))?;
    }
    for (name, source) in [
        ("decoder", &application.decoder),
        ("converter", &application.converter),
        ("validator", &application.validator),
        ("encoder", &application.encoder),
    ] {
        match (source.is_empty(), io::stdout().is_terminal()) {
            (true, _) => say(format_args!("// no {name}"))?,
            (false, false) => say(format_args!("// {name}\n{source}\n"))?,
            // Another collaborator may have put terminal escapes into it.
            (false, true) => say(format_args!("// {name}\n{}\n", lines(source)))?,
        }
    }
    Ok(())
}

/// Sets a function or the format, after offering a test if somebody is at the terminal.
pub(super) async fn set(network: &Network, what: FunctionOrFormat, file: &Path, skip_test: bool) -> anyhow::Result<()> {
    let app_id = network.application(None)?;
    let source = if format_name(what).is_none() { read_function(file)? } else { String::new() };
    let handler = network.handler_for(&app_id).await?;
    let mut application = handler.get_application(&app_id).await?;
    match format_name(what) {
        Some(format) => format.clone_into(&mut application.payload_format),
        None => set_function(&mut application, what, source),
    }
    if !skip_test && can_ask() && format_name(what).is_none() {
        dry_run::offer(&handler, &application, what == FunctionOrFormat::Encoder).await?;
    }
    handler.set_application(application).await?;
    say(format_args!("Updated application {app_id}"))
}

/// The `payload_format` of applications; `None` for functions.
fn format_name(what: FunctionOrFormat) -> Option<&'static str> {
    match what {
        FunctionOrFormat::Custom => Some("custom"),
        FunctionOrFormat::Ts013 => Some(Dialect::Ts013.name()),
        FunctionOrFormat::V2 => Some(Dialect::V2.name()),
        FunctionOrFormat::ChirpStack3 => Some(Dialect::ChirpStack3.name()),
        FunctionOrFormat::CayenneLpp => Some("cayennelpp"),
        FunctionOrFormat::Decoder
        | FunctionOrFormat::Converter
        | FunctionOrFormat::Validator
        | FunctionOrFormat::Encoder => None,
    }
}

/// Sets a function, and a format that uses functions: setting one means that Cayenne LPP is no longer wanted.
fn set_function(application: &mut Application, what: FunctionOrFormat, source: String) {
    if Dialect::from_name(&application.payload_format).is_none() {
        "custom".clone_into(&mut application.payload_format);
    }
    match what {
        FunctionOrFormat::Decoder => application.decoder = source,
        FunctionOrFormat::Converter => application.converter = source,
        FunctionOrFormat::Validator => application.validator = source,
        _ => application.encoder = source,
    }
}

/// An empty file removes a function; empty standard input more likely means that an earlier command in a pipe failed.
fn read_function(file: &Path) -> anyhow::Result<String> {
    let source = script::read(file)?;
    let hint = "standard input is empty, so nothing was changed: to remove a function, give an empty file";
    ensure!(!script::is_stdin(file) || !source.trim().is_empty(), "{hint}");
    Ok(source)
}
