//! `airlock applications pf …`: the payload functions of an application.

use std::{
    io::{self, IsTerminal},
    path::Path,
};

use anyhow::{bail, ensure};
use api::{handler::Application, rest::handler::DecodeAgain};
use client::HexBytes;
use runtime::Dialect;
use types::AppId;
use workbench::is_stdin;

use super::{
    args::{FunctionOrFormat, SetFunction},
    candidates,
    dry_run::{self, TestMessage},
    versions,
};
use crate::{
    command_context::CommandContext,
    commands::history,
    exit::CommandError,
    output::Record,
    terminal::{can_ask, lines, sanitize, say},
    values::{json_object::JsonObject, script},
};

/// Prints the functions, of a version or those that are live, as one script, or as a record for programs.
pub(super) async fn get((context, app_id): (&CommandContext, &AppId), version: Option<u32>) -> anyhow::Result<()> {
    let handler = context.handler_for(app_id).await?;
    let application = match version {
        Some(number) => handler.get_version(app_id, number).await?.functions.unwrap_or_default(),
        None => handler.get_application(app_id).await?,
    };
    if context.output.is_table() { print_script(&application) } else { context.output.record(record(application)) }
}

fn record(application: Application) -> Record {
    let format = if application.payload_format.is_empty() { "custom".to_owned() } else { application.payload_format };
    Record::new([
        (("app_id", "AppID"), application.app_id.into()),
        (("payload_format", "Payload format"), format.into()),
        (("decoder", "Decoder"), application.decoder.into()),
        (("converter", "Converter"), application.converter.into()),
        (("validator", "Validator"), application.validator.into()),
        (("encoder", "Encoder"), application.encoder.into()),
    ])
}

fn print_script(application: &Application) -> anyhow::Result<()> {
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

/// Sets a function or the format, after a test with the given message, or with the one that somebody at the terminal
/// enters.
pub(super) async fn set((context, app_id): (&CommandContext, &AppId), set: SetFunction) -> anyhow::Result<()> {
    let SetFunction { what, file, skip_test, payload, fields, port, record, preview, label, share } = set;
    let is_encoder = what == FunctionOrFormat::Encoder;
    if is_encoder && (payload.is_some() || record.is_some()) {
        bail!(CommandError::invalid("an encoder is tested with --fields, and not with --payload or --record"));
    }
    let message = match (payload, fields) {
        (Some(HexBytes(payload)), _) => Some((TestMessage::Payload(payload), port)),
        (None, Some(JsonObject(fields))) => Some((TestMessage::Fields(fields), port)),
        (None, None) => record.map(|record| (TestMessage::Record(record), 0)),
    };
    let source = if format_name(what).is_none() { read_function(context, &file)? } else { String::new() };
    let handler = context.handler_for(app_id).await?;
    let mut application = handler.get_application(app_id).await?;
    match format_name(what) {
        Some(format) => format.clone_into(&mut application.payload_format),
        None => set_function(&mut application, what, source),
    }
    if let Some(per_device) = preview {
        let body = DecodeAgain {
            functions: Some(application.into()),
            compare_live: true,
            per_device,
            ..DecodeAgain::default()
        };
        let totals = history::decode::decode_all(context, app_id, body, None).await?;
        context.output.message("Nothing was changed: set the function without --preview")?;
        return totals.check();
    }
    let is_offered = message.is_none() && !skip_test && format_name(what).is_none() && !is_stdin(&file);
    let message = if is_offered { dry_run::offer(&context.output, is_encoder)? } else { message };
    if let Some(message) = message {
        dry_run::run((&context.output, &handler), &application, message).await?;
    }
    if share.share.is_some() {
        return candidates::start((context, &handler), application, label, share).await;
    }
    if label.note.is_some() || label.link.is_some() {
        return versions::create(context, &handler, application, label).await;
    }
    handler.set_application(application).await?;
    context.output.message(format_args!("Updated application {app_id}"))
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
pub(crate) fn set_function(application: &mut Application, what: FunctionOrFormat, source: String) {
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
fn read_function(context: &CommandContext, file: &Path) -> anyhow::Result<String> {
    if is_stdin(file) && can_ask() {
        context.output.message("Reading the function from standard input; end it with Ctrl-D")?;
    }
    let source = script::read(file)?;
    let hint = "standard input is empty, so nothing was changed: to remove a function, give an empty file";
    ensure!(!is_stdin(file) || !source.trim().is_empty(), CommandError::invalid(hint));
    Ok(source)
}
