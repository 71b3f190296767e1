//! Base64 as clients of v2 write it.

use base64::{DecodeError, Engine, engine::general_purpose::STANDARD};

/// Reads standard base64. Line breaks are skipped, as v2 did.
pub fn decode_base64(text: &str) -> Result<Vec<u8>, DecodeError> {
    if text.contains(['\r', '\n']) {
        return STANDARD.decode(text.replace(['\r', '\n'], ""));
    }
    STANDARD.decode(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_are_skipped_and_nothing_else() {
        for text in ["AQID", "AQ\r\nID\n", "\nAQID"] {
            assert_eq!(decode_base64(text).unwrap(), [1, 2, 3], "{text:?}");
        }
        for text in ["AQ ID", "AQ=\n", "?"] {
            assert!(decode_base64(text).is_err(), "{text:?}");
        }
    }
}
