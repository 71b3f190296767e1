//! Fields as people type them: the text of a JSON object.

use std::str::FromStr;

use serde_json::value::RawValue;

/// A JSON object as it was typed. Its strings are not decoded, because those of JavaScript may have lone surrogates.
#[derive(Clone, Debug)]
pub(crate) struct JsonObject(pub(crate) Box<RawValue>);

impl FromStr for JsonObject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let must = "must be a JSON object, as in '{\"led\": true}'";
        let json: Box<RawValue> = serde_json::from_str(text).map_err(|error| format!("fields {must}: {error}"))?;
        if json.get().starts_with('{') { Ok(Self(json)) } else { Err(format!("fields {must}")) }
    }
}
