//! How much memory codecs take, so that all of them together have a bound.

use serde_json::Value;

use super::codec::{Codec, Example, Expected, Input};

/// What a text takes beside its bytes.
const TEXT_BYTES: usize = 48;
/// What an object takes beside its members, and each of these beside its name and value.
const OBJECT_BYTES: usize = 320;
const MEMBER_BYTES: usize = 64;

/// About what `codec` takes in memory, in bytes; rather too much than too little.
///
/// It may be many times its text: a zero in a list has two characters, and its value as many bytes as any other.
pub(super) fn memory_bytes(codec: &Codec) -> u64 {
    let Codec { id, script, dialect: _, examples, others } = codec;
    let others: usize = others.iter().map(|name| TEXT_BYTES + name.len()).sum();
    let examples: usize = examples.iter().map(of_example).sum();
    (size_of::<Codec>() + id.len() + script.len() + others + examples) as u64
}

fn of_example(example: &Example) -> usize {
    let input = match &example.input {
        Input::Bytes(bytes) => bytes.len(),
        Input::Json(value) => of_value(value),
    };
    let expected = match &example.expected {
        Expected::Value(value) => of_value(value),
        _ => 0,
    };
    let extra: usize = example.extra.iter().map(of_member).sum();
    size_of::<Example>() + OBJECT_BYTES + example.description.len() + input + expected + extra
}

fn of_value(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => TEXT_BYTES + text.len(),
        Value::Array(values) => values.iter().map(of_value).sum(),
        Value::Object(members) => OBJECT_BYTES + members.iter().map(of_member).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inside
}

fn of_member((name, value): (&String, &Value)) -> usize {
    MEMBER_BYTES + name.len() + of_value(value)
}
