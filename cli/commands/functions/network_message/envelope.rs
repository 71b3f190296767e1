//! What programs put around a message: the topic before it, and objects that have it as a member.

use anyhow::{anyhow, ensure};
use serde_json::{Map, Value};
use workbench::json_problem;

/// How many objects may be around a message.
const DEPTH_MAX: usize = 4;

/// The message in a text, which may have an MQTT topic before it as `mosquitto_sub -v` prints it.
pub(super) fn message(text: &str) -> anyhow::Result<Value> {
    let text = without_topic(text.trim_start_matches('\u{feff}'));
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let problem =
        |error: &serde_json::Error| anyhow!("not JSON in line {}: {}", error.line(), json_problem(error, text));
    let message = match values.next() {
        Some(message) => message.map_err(|error| problem(&error))?,
        // The error of an empty text.
        None => serde_json::from_str(text).map_err(|error| problem(&error))?,
    };
    let rest = text.get(values.byte_offset()..).unwrap_or_default().trim();
    ensure!(rest.is_empty(), "it goes on after the first message: keep one");
    Ok(message)
}

/// Of `TOPIC {…}`, what follows the topic.
fn without_topic(text: &str) -> &str {
    let cut = text.trim_start().split_once([' ', '\t']);
    let after = cut.filter(|(topic, rest)| topic.contains('/') && rest.trim_start().starts_with(['{', '[']));
    after.filter(|(topic, _)| !topic.contains(['{', '"', '\n'])).map_or(text, |(_, message)| message)
}

/// What `find` finds in `message`, or in an object within.
pub(super) fn search<T>(
    message: Value,
    find: impl Fn(&Map<String, Value>) -> anyhow::Result<Option<T>>,
) -> anyhow::Result<Option<T>> {
    let mut inner = Some(message);
    for _ in 0..=DEPTH_MAX {
        let Some(message) = inner else { return Ok(None) };
        inner = match message {
            Value::Object(message) => match find(&message)? {
                Some(found) => return Ok(Some(found)),
                None => within(message),
            },
            Value::Array(mut messages) => {
                ensure!(messages.len() < 2, "it is a list of {} messages: keep one", messages.len());
                messages.pop()
            }
            _ => None,
        };
    }
    Ok(None)
}

/// The message in `{"result": …}` of The Things Stack's storage, or in `{"payload": …}` of Node-RED.
fn within(mut message: Map<String, Value>) -> Option<Value> {
    match message.remove("result").or_else(|| message.remove("payload"))? {
        Value::String(text) => object(text.as_bytes()),
        Value::Object(inner) => match buffer(&inner) {
            Some(bytes) => object(&bytes),
            None => Some(Value::Object(inner)),
        },
        list @ Value::Array(_) => Some(list),
        _ => None,
    }
}

/// A JSON object in a text.
fn object(text: &[u8]) -> Option<Value> {
    serde_json::from_slice(text).ok().filter(Value::is_object)
}

/// The bytes of a `Buffer` as Node.js writes it: `{"type": "Buffer", "data": [1, 2]}`.
pub(super) fn buffer(object: &Map<String, Value>) -> Option<Vec<u8>> {
    let bytes = object.get("data").filter(|_| object.get("type").and_then(Value::as_str) == Some("Buffer"))?;
    let byte = |byte: &Value| byte.as_u64().and_then(|byte| u8::try_from(byte).ok());
    bytes.as_array()?.iter().map(byte).collect()
}
