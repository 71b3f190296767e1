//! The codec that the page sends, with uplinks as its examples.

use runtime::{Dialect, Function};
use serde::Deserialize;

use crate::codec::{Codec, Example, Input};

/// A codec as it is typed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Submitted {
    text: String,
    /// Detected if there is none.
    dialect: Option<String>,
    uplinks: Vec<Uplink>,
}

/// An uplink of the page.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Uplink {
    /// The line where it is typed, from 1.
    line: u32,
    port: u8,
    payload: Vec<u8>,
    /// The time that functions see, in milliseconds since 1970.
    time_ms: i64,
}

impl Submitted {
    /// The codec, whose examples expect nothing: they are compared with what its own text returns.
    pub(crate) fn codec(self) -> Result<Codec, String> {
        let Self { text, dialect, uplinks } = self;
        let named = |name: String| Dialect::from_name(&name).ok_or_else(|| format!("there is no dialect `{name}`"));
        let dialect = dialect.map(named).transpose()?;
        let examples = uplinks.into_iter().map(Uplink::example).collect();
        Ok(Codec { dialect, examples, ..Codec::new("codec".to_owned(), text, None) })
    }
}

impl Uplink {
    fn example(self) -> Example {
        Example {
            description: format!("payload of line {}", self.line),
            port: self.port,
            time_ms: self.time_ms,
            ..Example::new(Function::Decoder, Input::Bytes(self.payload))
        }
    }
}
