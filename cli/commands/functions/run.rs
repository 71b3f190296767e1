//! `airlock functions run`: runs one message, or a stream of them, and prints the results.

mod line;
mod report;
mod stream;

use std::sync::Arc;

use runtime::{CallOutcome, Engine, Value};
use types::Clock;
use workbench::{BadInput, is_stdin, log_line, microseconds};

use self::report::Report;
use super::args::{
    Run,
    message::{call, load, sources, to_error},
};
use crate::terminal::{json_lines, sanitize, say};

pub(super) fn run(run: &Run, settings: &runtime::Settings, clock: &dyn Clock) -> anyhow::Result<()> {
    if run.stream && [Some(&run.file), run.message.variables.as_ref()].into_iter().flatten().any(|file| is_stdin(file))
    {
        let reason =
            "`--stream` reads messages from standard input: name a file with the functions, and with variables";
        return Err(BadInput::Request(reason.to_owned()).into());
    }
    let sources = sources(&run.file, &run.message)?;
    if run.stream {
        return stream::run(run, &sources, settings, clock);
    }
    let call = call(&run.message, clock)?;
    let engine = Arc::new(Engine::new(settings)?);
    let functions = load(&engine, &sources)?;
    let outcome = engine.sandbox().call(&functions, &call);
    match run.json {
        true => say(json_lines(&Report::of(&outcome), false)?)?,
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
