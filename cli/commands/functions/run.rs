//! `airlock functions run`: one message, and what came of it.

use std::sync::Arc;

use runtime::{CallOutcome, Engine, Failure, Value};
use serde_json::{Map, Value as Json, json, value::RawValue};
use types::Clock;
use workbench::{log_line, microseconds};

use super::{
    args::Run,
    message::{call, load, sources, to_error},
};
use crate::terminal::{json_lines, sanitize, say};

pub(super) fn run(run: &Run, settings: &runtime::Settings, clock: &dyn Clock) -> anyhow::Result<()> {
    let sources = sources(&run.file, &run.message)?;
    let call = call(&run.message, clock)?;
    let engine = Arc::new(Engine::new(settings)?);
    let functions = load(&engine, &sources)?;
    let outcome = engine.sandbox().call(&functions, &call);
    match run.json {
        true => print_json(&outcome)?,
        false => print(&outcome)?,
    }
    outcome.result.map(drop).map_err(|failure| to_error(&failure, &sources))
}

fn print(outcome: &CallOutcome) -> anyhow::Result<()> {
    outcome.logs.iter().try_for_each(|entry| say(sanitize(&log_line(entry))))?;
    outcome.warnings.iter().try_for_each(|warning| say(format_args!("warning: {}", sanitize(warning))))?;
    if let Ok(value) = &outcome.result {
        print_value(value)?;
    }
    say(format_args!("{:.0} µs, fuel {}", microseconds(outcome.elapsed), outcome.fuel))
}

fn print_value(value: &Value) -> anyhow::Result<()> {
    match value {
        Value::Fields { json, normalized, valid } => {
            say(sanitize(json.get()))?;
            if let Some(normalized) = normalized {
                say(format_args!("normalized: {}", sanitize(normalized.get())))?;
            }
            if *valid { Ok(()) } else { say("not valid: it would not be published") }
        }
        Value::Bytes { bytes, port: Some(port) } => say(format_args!("{} on port {port}", hex::encode(bytes))),
        Value::Bytes { bytes, port: None } => say(hex::encode(bytes)),
        Value::Returned { json } => say(sanitize(json.as_ref().map_or("undefined", |json| json.get()))),
    }
}

/// Prints an object for programs, also if the functions failed.
fn print_json(outcome: &CallOutcome) -> anyhow::Result<()> {
    let mut report = Report { fields: None, normalized: None, other: Map::new() };
    match &outcome.result {
        Ok(Value::Fields { json, normalized, valid }) => {
            report.fields = Some(json);
            report.normalized = normalized.as_deref();
            report.set("valid", json!(valid));
        }
        Ok(Value::Returned { json }) => report.fields = json.as_deref(),
        Ok(Value::Bytes { bytes, port }) => {
            report.set("bytes", json!(hex::encode(bytes)));
            report.set("port", json!(port));
        }
        Err(failure) => report.set("failure", describe(failure)),
    }
    report.set("warnings", json!(outcome.warnings));
    report.set("logs", outcome.logs.iter().map(log_line).collect());
    report.set("fuel", json!(outcome.fuel));
    report.set("microseconds", json!(microseconds(outcome.elapsed)));
    say(json_lines(&report, false)?)
}

/// The JSON of functions is written as it is, because it may have lone surrogates.
#[derive(serde::Serialize)]
struct Report<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    normalized: Option<&'a RawValue>,
    #[serde(flatten)]
    other: Map<String, Json>,
}

impl Report<'_> {
    fn set(&mut self, name: &str, value: Json) {
        self.other.insert(name.to_owned(), value);
    }
}

fn describe(failure: &Failure) -> Json {
    json!({
        "function": failure.slot.name(),
        "kind": failure.kind.name(),
        "message": failure.message,
        "line": failure.line,
        "column": failure.column,
    })
}
