//! Encodings of payloads in the cells of a table.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Encoding of payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Base64.
    Base64,
    /// Hexadecimal, maybe after `\x` or `0x`.
    Hex,
}

impl Encoding {
    /// Detects the encoding of a column from its name or a payload. Returns `None` if neither is conclusive.
    pub(crate) fn detect(column: &str, sample: &[u8]) -> Option<Self> {
        let column = column.to_lowercase();
        let is_base64 = matches!(column.as_str(), "frm_payload" | "payload_raw") || column.contains("base64");
        // Base64 has no backslash, but may begin with `0x`.
        let is_prefixed = sample.starts_with(b"\\x")
            || !is_base64 && sample.strip_prefix(b"0x").is_some_and(|digits| hex::decode(digits).is_ok());
        if is_prefixed || column.contains("hex") {
            return Some(Self::Hex);
        }
        let cannot_be_hex = sample.iter().any(|byte| !byte.is_ascii_hexdigit());
        (is_base64 || !sample.is_empty() && cannot_be_hex).then_some(Self::Base64)
    }

    /// The payload in a cell.
    pub(crate) fn decode(self, text: &str) -> Result<Vec<u8>, String> {
        match self {
            Self::Base64 => STANDARD.decode(text).map_err(|_| "its payload is not Base64".to_owned()),
            Self::Hex => {
                let digits = text.strip_prefix("\\x").or_else(|| text.strip_prefix("0x")).unwrap_or(text);
                hex::decode(digits).map_err(|_| "its payload is not hexadecimal".to_owned())
            }
        }
    }
}
