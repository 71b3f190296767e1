//! Bytes as people write them: pairs of hexadecimal digits, with spaces between them or not.

use std::str::FromStr;

use hex::FromHexError;

/// Bytes that were given in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload(pub Vec<u8>);

/// Why a text is no payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPayload {
    /// A character is no digit.
    #[error("`{0}` is no hexadecimal digit; write bytes as in 01af")]
    Digit(char),
    /// A byte has one digit.
    #[error("every byte has two hexadecimal digits, as in 01af; one digit is missing")]
    Odd,
}

impl FromStr for Payload {
    type Err = BadPayload;

    fn from_str(text: &str) -> Result<Self, BadPayload> {
        let digits: String = text.chars().filter(|character| !character.is_whitespace()).collect();
        hex::decode(digits).map(Self).map_err(|error| match error {
            FromHexError::InvalidHexCharacter { c, .. } => BadPayload::Digit(c),
            FromHexError::OddLength | FromHexError::InvalidStringLength => BadPayload::Odd,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_may_have_spaces_between_them() {
        for (text, bytes) in [("", &[][..]), ("01af", &[1, 0xaf]), ("01 AF", &[1, 0xaf]), (" 0 1\taf\n", &[1, 0xaf])] {
            assert_eq!(text.parse(), Ok(Payload(bytes.to_vec())), "{text}");
        }
    }

    #[test]
    fn what_is_no_payload_is_told_in_words() {
        for (text, error) in [
            ("012", BadPayload::Odd),
            ("0x01", BadPayload::Digit('x')),
            ("01,02ff", BadPayload::Odd),
            ("0102,f", BadPayload::Digit(',')),
        ] {
            assert_eq!(text.parse::<Payload>(), Err(error), "{text}");
        }
    }
}
