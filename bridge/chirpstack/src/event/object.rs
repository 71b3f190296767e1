//! The object of an uplink as a protocol buffer, where every number is floating-point and every text is Unicode.

use std::borrow::Cow;

use pbjson_types::{ListValue, Struct, Value as Message, value::Kind};
use serde_json::{Map, Value, value::RawValue};

const REPLACEMENT: &str = "\u{fffd}";

/// An object as a protocol buffer. `pbjson` itself takes no integer of more than 32 bits.
pub(crate) fn to_struct(object: &RawValue) -> serde_json::Result<Struct> {
    let text = object.get();
    let parsed = serde_json::from_str(text).or_else(|_| serde_json::from_str(&without_lone_surrogates(text)))?;
    Ok(structure(parsed))
}

fn structure(object: Map<String, Value>) -> Struct {
    Struct { fields: object.into_iter().map(|(name, value)| (name, message(value))).collect() }
}

fn message(value: Value) -> Message {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(value) => Kind::BoolValue(value),
        Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => Kind::StringValue(text),
        Value::Array(values) => Kind::ListValue(ListValue { values: values.into_iter().map(message).collect() }),
        Value::Object(object) => Kind::StructValue(structure(object)),
    };
    Message { kind: Some(kind) }
}

/// The same JSON with a replacement character for each escape of half a surrogate pair, which JavaScript allows.
fn without_lone_surrogates(json: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let length = match (code_unit(escape), escape.get(6..).and_then(code_unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => 0,
            (Some(_), _) => 6,
            // The backslash and the character that it escapes, which may be another backslash.
            (None, _) => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        out.push_str(if length == 0 { REPLACEMENT } else { &escape[..length] });
        rest = &escape[if length == 0 { 6 } else { length }..];
    }
    if out.is_empty() {
        return Cow::Borrowed(json);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The UTF-16 code unit of the escape `\uXXXX` at the beginning of a text.
fn code_unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_has_a_protocol_buffer() {
        for (json, expected) in [
            (
                r#"{"n":1795366259000,"m":-1795366259000,"f":1e300}"#,
                r#"{"f":1e300,"m":-1795366259000.0,"n":1795366259000.0}"#,
            ),
            (r#"{"b":[true,null,{"a":"\ud83d\ude00"}]}"#, r#"{"b":[true,null,{"a":"😀"}]}"#),
            (r#"{"lone":"\ud800x\udc00","kept":"\\ud800"}"#, "{\"kept\":\"\\\\ud800\",\"lone\":\"\u{fffd}x\u{fffd}\"}"),
        ] {
            let found = to_struct(&RawValue::from_string(json.to_owned()).unwrap()).unwrap();
            assert_eq!(
                serde_json::to_value(&found).unwrap(),
                serde_json::from_str::<Value>(expected).unwrap(),
                "{json}"
            );
        }
    }
}
