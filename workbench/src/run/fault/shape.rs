//! Rules for the result of a function in its dialect.

use runtime::{Dialect, Function};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The result of a function of TS013.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Returned<'a> {
    #[serde(borrow, default, deserialize_with = "or_null")]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    bytes: Option<&'a RawValue>,
    #[serde(borrow)]
    errors: Option<&'a RawValue>,
    #[serde(rename = "fPort")]
    port: Option<u8>,
}

/// Keeps null, where the default would read it as an absent member.
fn or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Returned<'a> {
    /// None if it is no object, or has something else as its port.
    pub(crate) fn read(json: &'a str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// Returns true if it refuses the message.
    pub(crate) fn has_errors(&self) -> bool {
        let is_empty = |errors: &RawValue| ["[]", "null", "false", "\"\""].contains(&errors.get());
        self.errors.is_some_and(|errors| !is_empty(errors))
    }

    /// The JSON of its fields, if it has any and no errors.
    pub(crate) fn fields(&self) -> Option<&'a str> {
        let data = self.data.filter(|_| !self.has_errors())?.get();
        (data.starts_with('{') && data != "{}").then_some(data)
    }

    /// Its payload and port, if it has them and no errors.
    pub(crate) fn payload(&self) -> Option<(Vec<u8>, Option<u8>)> {
        let bytes = self.bytes.filter(|_| !self.has_errors())?;
        Some((serde_json::from_str(bytes.get()).ok()?, self.port))
    }
}

/// Describes the fault in the JSON that `function` returned, if any. `json` is `None` for a value without JSON.
pub(super) fn wrong(dialect: Dialect, function: Function, json: Option<&str>) -> Option<String> {
    let json = json.unwrap_or("undefined");
    let is_called_with_fields = matches!(function, Function::Converter | Function::Validator);
    match dialect {
        _ if is_called_with_fields => None,
        Dialect::Ts013 if json.starts_with('{') => wrong_members(function, &Returned::read(json)?),
        Dialect::V2 | Dialect::ChirpStack3 if function == Function::Encoder => {
            let is_payload = serde_json::from_str::<Vec<u8>>(json).is_ok();
            (!is_payload).then(|| format!("returned {}, and not a list of bytes", name(json)))
        }
        _ if json.starts_with('{') => None,
        _ => Some(format!("returned {}, and not an object", name(json))),
    }
}

fn wrong_members(function: Function, returned: &Returned<'_>) -> Option<String> {
    if returned.has_errors() {
        return None;
    }
    match (function, returned.data, returned.bytes) {
        (Function::Encoder, _, Some(_)) if returned.payload().is_some() => None,
        (Function::Encoder, _, Some(_)) => Some("returned `bytes` that are not a list of bytes".to_owned()),
        (Function::Encoder, _, None) => Some("returned an object without `bytes` or `errors`".to_owned()),
        (_, Some(data), _) if ["{", "n"].iter().any(|first| data.get().starts_with(first)) => None,
        (Function::NormalizeUplink, Some(data), _) if data.get().starts_with('[') => None,
        (_, Some(data), _) => Some(format!("returned {} as `data`, and not an object", name(data.get()))),
        (_, None, _) => Some("returned an object without `data` or `errors`".to_owned()),
    }
}

/// Returns the type of a JSON text, in words.
fn name(json: &str) -> &'static str {
    match json.bytes().next() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        Some(b'u') => "undefined",
        _ => "a number",
    }
}
