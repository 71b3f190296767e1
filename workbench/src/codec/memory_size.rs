//! Estimates how much memory a codec takes, so that their sum can be limited.

use serde_json::Value;

use super::{Codec, Example, Expected, Input};

/// Overhead of a heap-allocated string.
const STRING_BYTES: usize = 48;
/// The place of an example, with the way to it.
const PLACE_BYTES: usize = 256;
/// Overhead of an object, and of each of its members besides name and value.
const OBJECT_BYTES: usize = 320;
const MEMBER_BYTES: usize = 64;

/// An upper estimate of the memory that `codec` takes, in bytes.
///
/// It can be many times the length of the JSON: a zero in an array is two characters long, but takes as much memory as
/// any other value.
pub(crate) fn memory_bytes(codec: &Codec) -> u64 {
    let Codec { id, script, script_file, dialect: _, examples, unknown_members } = codec;
    let file = script_file.as_ref().map_or(0, |file| file.as_os_str().len());
    let unknown: usize = unknown_members.iter().map(|name| STRING_BYTES + name.len()).sum();
    let examples: usize = examples.iter().map(example_bytes).sum();
    (size_of::<Codec>() + id.len() + script.len() + file + unknown + examples) as u64
}

fn example_bytes(example: &Example) -> usize {
    let input = match &example.input {
        Input::Bytes(bytes) => bytes.len(),
        Input::Json(value) => value_bytes(value),
    };
    let expected = match &example.expected {
        Expected::Value(value) => value_bytes(value),
        Expected::Listed(names) => names.iter().map(|name| STRING_BYTES + name.len()).sum(),
        _ => 0,
    };
    let extra: usize = example.extra.iter().map(member_bytes).sum();
    size_of::<Example>() + PLACE_BYTES + OBJECT_BYTES + example.description.len() + input + expected + extra
}

fn value_bytes(value: &Value) -> usize {
    let content = match value {
        Value::String(text) => STRING_BYTES + text.len(),
        Value::Array(values) => values.iter().map(value_bytes).sum(),
        Value::Object(members) => OBJECT_BYTES + members.iter().map(member_bytes).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + content
}

fn member_bytes((name, value): (&String, &Value)) -> usize {
    MEMBER_BYTES + name.len() + value_bytes(value)
}
