//! Envelopes of messages: the topic before one, and objects that have it as a member.

use serde_json::value::RawValue;
use workbench::json_problem;

use super::{
    MessageError,
    object::{Object, text},
};

/// Maximum number of objects around a message.
const DEPTH_MAX: usize = 4;

/// Searches an object for a message.
pub(super) type Find<'f, T> = &'f dyn Fn(&Object<'_>) -> Result<Option<T>, MessageError>;

/// The message in a text, which may have an MQTT topic before it as `mosquitto_sub -v` prints it.
pub(super) fn message(text: &str) -> Result<&str, MessageError> {
    let text = without_topic(text.trim_start_matches('\u{feff}'));
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let problem =
        |error: &serde_json::Error| MessageError::Json { line: error.line(), problem: json_problem(error, text) };
    let message = match values.next() {
        Some(message) => message.map_err(|error| problem(&error))?,
        // The error of an empty text.
        None => serde_json::from_str(text).map_err(|error| problem(&error))?,
    };
    match text.get(values.byte_offset()..).unwrap_or_default().trim() {
        "" => Ok(message.get()),
        _ => Err(MessageError::new("it goes on after the first message: keep one")),
    }
}

/// Returns the text after the topic in `TOPIC {…}`.
fn without_topic(text: &str) -> &str {
    let start = text.trim_start();
    if start.starts_with(['{', '[']) {
        return text;
    }
    let cut = start.split_once([' ', '\t']);
    let after = cut.filter(|(topic, rest)| topic.contains('/') && rest.trim_start().starts_with(['{', '[']));
    after.filter(|(topic, _)| !topic.contains(['{', '"', '\n'])).map_or(text, |(_, message)| message)
}

/// Applies `find` to a message, and to the objects within.
pub(super) fn search<T>(message: &str, find: Find<'_, T>) -> Result<Option<T>, MessageError> {
    within(message, DEPTH_MAX, find)
}

fn within<T>(message: &str, depth: usize, find: Find<'_, T>) -> Result<Option<T>, MessageError> {
    let Some(object) = Object::parse(message) else {
        let list: Vec<&RawValue> = serde_json::from_str(message).unwrap_or_default();
        return match list.as_slice() {
            [message] if depth > 0 => within(message.get(), depth - 1, find),
            [] | [_] => Ok(None),
            list => Err(MessageError::new(format!("it is a list of {} messages: keep one", list.len()))),
        };
    };
    match find(&object)? {
        Some(found) => Ok(Some(found)),
        None if depth == 0 => Ok(None),
        None => inner(&object, depth - 1, find),
    }
}

/// The message in `{"result": …}` of The Things Stack's storage, or in `{"payload": …}` of Node-RED.
fn inner<T>(object: &Object<'_>, depth: usize, find: Find<'_, T>) -> Result<Option<T>, MessageError> {
    let Some(member) = object.get("result").or_else(|| object.get("payload")) else { return Ok(None) };
    if let Some(text) = text(member) {
        return if is_object(&text) { within(&text, depth, find) } else { Ok(None) };
    }
    match buffer(member).map(String::from_utf8) {
        Some(Ok(text)) if is_object(&text) => within(&text, depth, find),
        Some(_) => Ok(None),
        None => within(member.get(), depth, find),
    }
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// The bytes of a `Buffer` as Node.js writes it: `{"type": "Buffer", "data": [1, 2]}`.
pub(super) fn buffer(value: &RawValue) -> Option<Vec<u8>> {
    let object = Object::parse(value.get())?;
    object.text("type").filter(|kind| kind == "Buffer")?;
    serde_json::from_str(object.get("data")?.get()).ok()
}
