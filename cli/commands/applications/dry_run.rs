//! Dry runs of an application's payload functions, before they are saved.

use anyhow::Context;
use api::handler::{Application, DryDownlinkMessage, DryUplinkMessage, DryUplinkResult, LogEntry};
use client::{HexBytes, handler::HandlerClient};
use serde_json::{Value, json, value::RawValue};

use crate::{
    output::{Cell, Output, Record},
    terminal::{ask, can_ask, has_typed_ahead, sanitize, say},
    values::json_object::JsonObject,
};

const FAILED: &str = "the test failed, so nothing was changed";

/// A message to test functions with.
pub(super) enum TestMessage {
    /// For decoder, converter and validator.
    Payload(Vec<u8>),
    /// The id of a stored uplink, which has a port of its own.
    Record(String),
    /// For the encoder.
    Fields(Box<RawValue>),
}

/// Asks whether to test the functions, and with which message and port, if somebody is there to answer. What was typed
/// before the question is no answer: it may be the next command.
pub(super) fn offer(output: &Output, is_encoder: bool) -> anyhow::Result<Option<(TestMessage, u32)>> {
    if !can_ask() || !output.is_table() {
        return Ok(None);
    }
    if has_typed_ahead() {
        let option = if is_encoder { "--fields" } else { "--payload" };
        output.message(format_args!("Not tested, since more was typed already: test with {option}"))?;
        return Ok(None);
    }
    let answer = ask("Do you want to test the payload functions? (Y/n) > ")?.to_lowercase();
    if !matches!(answer.as_str(), "" | "y" | "yes") {
        return Ok(None);
    }
    let message = match is_encoder {
        true => TestMessage::Fields(ask("Fields (JSON): ")?.parse::<JsonObject>().map_err(anyhow::Error::msg)?.0),
        false => TestMessage::Payload(ask("Payload (hexadecimal): ")?.parse::<HexBytes>()?.0),
    };
    Ok(Some((message, ask_port()?)))
}

/// Runs the functions; an error when one fails.
pub(super) async fn run(
    (output, handler): (&Output, &HandlerClient),
    application: &Application,
    (message, port): (TestMessage, u32),
) -> anyhow::Result<()> {
    let app = Some(application.clone());
    match message {
        TestMessage::Payload(payload) => {
            let uplink = DryUplinkMessage { payload, app, port, ..DryUplinkMessage::default() };
            print_uplink(output, &handler.dry_uplink(uplink).await.context(FAILED)?)
        }
        TestMessage::Record(record) => {
            let uplink = DryUplinkMessage { app, record, ..DryUplinkMessage::default() };
            print_uplink(output, &handler.dry_uplink(uplink).await.context(FAILED)?)
        }
        TestMessage::Fields(fields) => {
            let downlink = DryDownlinkMessage { payload: Vec::new(), fields: fields.get().to_owned(), app, port };
            let result = handler.dry_downlink(downlink).await.context(FAILED)?;
            print_logs(output, &result.logs)?;
            output.record(Record::new([(("payload", "Payload"), hex::encode_upper(result.payload).into())]))
        }
    }
}

/// Prints what the functions made of an uplink, and what that cost.
pub(crate) fn print_uplink(output: &Output, result: &DryUplinkResult) -> anyhow::Result<()> {
    let fields = serde_json::from_str::<Value>(&result.fields).unwrap_or_else(|_| result.fields.as_str().into());
    if !output.is_table() {
        return output.record(Record::new([
            (("fields", "Fields"), Cell::new("", fields)),
            (("valid", "Valid"), result.valid.into()),
            (("logs", "Logs"), logs(&result.logs)),
            (("warnings", "Warnings"), Cell::list(&result.warnings, "; ")),
            (("fuel", "Fuel"), Cell::new("", result.fuel)),
            (("microseconds", "Microseconds"), Cell::new("", result.microseconds)),
        ]));
    }
    print_logs(output, &result.logs)?;
    result.warnings.iter().try_for_each(|warning| say(format_args!("Warning: {}", sanitize(warning))))?;
    say(format_args!("Fields: {}", sanitize(&result.fields)))?;
    say(if result.valid { "The message is valid" } else { "The message is not valid" })?;
    say(format_args!("Cost: {} fuel, {} µs", result.fuel, result.microseconds))
}

fn logs(entries: &[LogEntry]) -> Cell {
    let entry = |entry: &LogEntry| json!({"function": entry.function, "fields": entry.fields});
    Cell::new("", entries.iter().map(entry).collect::<Vec<Value>>())
}

fn ask_port() -> anyhow::Result<u32> {
    let answer = ask("Port [1]: ")?;
    if answer.is_empty() { Ok(1) } else { answer.parse().context("a port is a number from 1 to 255") }
}

/// Prints what the functions wrote to the console.
pub(crate) fn print_logs(output: &Output, logs: &[LogEntry]) -> anyhow::Result<()> {
    let mut lines = logs.iter().map(|entry| format!("{}: {}", entry.function, sanitize(&entry.fields.join(" "))));
    lines.try_for_each(|line| output.message(line))
}
