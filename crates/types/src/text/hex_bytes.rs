//! Bytes in hexadecimal, with or without spaces.

use std::{fmt, str::FromStr};

use hex::FromHexError;

/// Bytes parsed from hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HexBytes(pub Vec<u8>);

/// Reasons why a text is not hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HexBytesError {
    /// A character is not a hexadecimal digit.
    #[error("`{0}` is not a hexadecimal digit; write bytes like 01af")]
    Digit(char),
    /// The last byte has only one digit.
    #[error("odd number of hexadecimal digits; write two per byte, like 01af")]
    Odd,
}

impl fmt::Display for HexBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02X}"))
    }
}

impl FromStr for HexBytes {
    type Err = HexBytesError;

    fn from_str(text: &str) -> Result<Self, HexBytesError> {
        let digits: String = text.chars().filter(|character| !character.is_whitespace()).collect();
        hex::decode(digits).map(Self).map_err(|error| match error {
            FromHexError::InvalidHexCharacter { c, .. } => HexBytesError::Digit(c),
            FromHexError::OddLength | FromHexError::InvalidStringLength => HexBytesError::Odd,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Conformance: Random keys and EUIs; EUIs and payloads in hexadecimal
    #[test]
    fn ignores_spaces_between_bytes() {
        for (text, bytes) in [("", &[][..]), ("01af", &[1, 0xaf]), ("01 AF", &[1, 0xaf]), (" 0 1\taf\n", &[1, 0xaf])] {
            assert_eq!(text.parse(), Ok(HexBytes(bytes.to_vec())), "{text}");
        }
    }

    #[test]
    fn refuses_malformed_bytes_with_a_reason() {
        for (text, error) in [
            ("012", HexBytesError::Odd),
            ("0x01", HexBytesError::Digit('x')),
            ("01,02ff", HexBytesError::Odd),
            ("0102,f", HexBytesError::Digit(',')),
        ] {
            assert_eq!(text.parse::<HexBytes>(), Err(error), "{text}");
        }
    }
}
