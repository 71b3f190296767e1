//! The name of a codec, which is also that of its file.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::Serialize;

use crate::Error;

/// Maximum length of a name, in bytes.
const BYTES_MAX: usize = 64;

/// Letters, digits, `-`, `_` and `.`, of which the first is a letter or digit; so it is never a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct CodecName(#[schemars(regex(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"))] String);

impl CodecName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// With the extension `.js`.
    pub(crate) fn file_name(&self) -> String {
        format!("{}.js", self.0)
    }
}

impl FromStr for CodecName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let starts_well = text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
        if starts_well && text.len() <= BYTES_MAX && text.bytes().all(is_allowed) {
            return Ok(Self(text.to_owned()));
        }
        Err(Error::invalid(
            "name of a codec",
            format_args!(
                "it must have 1 to {BYTES_MAX} letters, digits, `-`, `_` and `.`, and start with a letter or digit"
            ),
        ))
    }
}

impl fmt::Display for CodecName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_a_path() {
        for name in ["a", "0", "Milesight-EM300_th.v2", &"x".repeat(64)] {
            assert_eq!(name.parse::<CodecName>().unwrap().file_name(), format!("{name}.js"));
        }
        for name in ["", ".", "..", ".hidden", "-x", "a/b", "a\\b", "ä", "a b", "a\0", &"x".repeat(65)] {
            name.parse::<CodecName>().unwrap_err();
        }
    }
}
