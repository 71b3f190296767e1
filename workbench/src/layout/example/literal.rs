//! Reads JSON, and what authors write instead of it: JavaScript with comments, hexadecimal numbers and trailing commas.

use std::sync::Arc;

use runtime::{Call, Dialect, Engine, EntryPoint, Function, Limits, Sources};
use serde_json::Value;

use crate::text::{json_problem::json_problem, surrogates::mark};

/// Maximum length of a value, in bytes of JSON, its members, and its depth.
const VALUE_BYTES_MAX: u32 = 4 << 20;
const KEYS_MAX: u32 = 1 << 20;
const DEPTH_MAX: u32 = 64;

/// The value of `text`, or the line and reason why there is none. What is not JSON is evaluated in a sandbox.
pub(in super::super) fn evaluate(text: &str, engine: &Arc<Engine>) -> Result<Value, (usize, String)> {
    let text = text.trim_start_matches('\u{feff}');
    let error = match serde_json::from_str(&mark(text)) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    match run(text, engine) {
        Some(value) => Ok(value),
        // The parser says best what is wrong: few authors write JavaScript here.
        None => Err((error.line(), format!("neither JSON nor a JavaScript value: {}", json_problem(&error, text)))),
    }
}

fn run(text: &str, engine: &Arc<Engine>) -> Option<Value> {
    let limits = Limits {
        source_bytes_max: VALUE_BYTES_MAX as usize,
        fields_bytes_max: VALUE_BYTES_MAX,
        fields_keys_max: KEYS_MAX,
        fields_depth_max: DEPTH_MAX,
        ..engine.limits().as_ref().clone()
    };
    let expression = text.trim_end().trim_end_matches(';');
    let sources = Sources {
        decoder: format!("function Decoder() {{ return (\n{expression}\n); }}"),
        dialect: Some(Dialect::V2),
        ..Sources::default()
    };
    let functions = engine.load(&sources, &Arc::new(limits)).ok()?;
    let call = Call {
        entry_point: EntryPoint::SingleFunction,
        port: 0,
        time_ms: 0,
        seed: 0,
        payload: Vec::new(),
        extra: String::new(),
        single_function: Some(Function::Decoder),
    };
    match engine.sandbox().call(&functions, &call).result.ok()? {
        runtime::Value::Returned { json: Some(json) } => serde_json::from_str(&mark(json.get())).ok(),
        _ => None,
    }
}
