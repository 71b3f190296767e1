//! The codec that the page sends, with uplinks as its examples.

use runtime::{Dialect, Function};
use serde::Deserialize;
use serde_json::Map;
use workbench::{Codec, Example, Expected, Input, Tolerance};

use super::error::Error;

/// Maximum number of uplinks: each runs once for every network.
const UPLINKS_MAX: usize = 8;

/// A codec as it is typed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Submitted {
    text: String,
    /// Detected if there is none.
    dialect: Option<String>,
    uplinks: Vec<Uplink>,
}

/// An uplink of the page.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Uplink {
    /// The line where it is typed, from 1.
    line: u32,
    port: u8,
    /// In hexadecimal.
    payload: String,
    /// The time that functions see, in milliseconds since 1970.
    time_ms: i64,
}

impl Submitted {
    /// The codec, whose examples expect nothing: they are compared with what its own text returns.
    pub(super) fn codec(self) -> Result<Codec, Error> {
        let Self { text, dialect, uplinks } = self;
        if uplinks.len() > UPLINKS_MAX {
            return Err(Error::Uplinks { count: uplinks.len(), max: UPLINKS_MAX });
        }
        let named = |name: String| Dialect::from_name(&name).ok_or(Error::Dialect(name));
        let dialect = dialect.map(named).transpose()?;
        let examples = uplinks.into_iter().map(Uplink::example).collect::<Result<_, _>>()?;
        Ok(Codec { dialect, examples, ..Codec::new("codec".to_owned(), text, None) })
    }
}

impl Uplink {
    fn example(self) -> Result<Example, Error> {
        let payload = hex::decode(&self.payload).map_err(|_| Error::Payload(self.line))?;
        Ok(Example {
            description: format!("payload of line {}", self.line),
            function: Function::Decoder,
            port: self.port,
            input: Input::Bytes(payload),
            extra: Map::new(),
            time_ms: self.time_ms,
            expected: Expected::Unknown,
            wrapped: false,
            tolerance: Tolerance::None,
            excluded: None,
            place: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn codec(uplinks: usize, payload: &str, dialect: Option<&str>) -> Result<Codec, String> {
        let uplink = json!({"line": 3, "port": 1, "payload": payload, "timeMs": 0});
        let submitted = json!({"text": "", "dialect": dialect, "uplinks": vec![uplink; uplinks]});
        serde_json::from_value::<Submitted>(submitted).unwrap().codec().map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_submitted_is_a_codec_with_examples() {
        let codec = codec(UPLINKS_MAX, "0102", Some("v2")).unwrap();
        assert_eq!((codec.examples.len(), codec.dialect), (UPLINKS_MAX, Some(Dialect::V2)));
    }

    #[test]
    fn what_is_too_much_or_not_valid_is_refused_with_a_reason() {
        for (refused, reason) in [
            (codec(UPLINKS_MAX + 1, "", None), "9 uplinks are too many"),
            (codec(1, "xy", None), "the payload of line 3"),
            (codec(0, "", Some("es5")), "there is no dialect `es5`"),
        ] {
            assert!(refused.unwrap_err().contains(reason), "{reason}");
        }
    }
}
