//! Checks of text, bytes as text, and serialization as text.

mod base64;
mod hex_bytes;

use std::ops::RangeInclusive;

pub use self::{
    base64::decode_base64,
    hex_bytes::{HexBytes, HexBytesError},
};

/// Returns true if a text is one line without control characters, and its length in characters is in this range.
pub fn is_line(text: &str, characters: RangeInclusive<usize>) -> bool {
    characters.contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

/// Implements `Serialize` with `Display`, and `Deserialize` with `FromStr`.
#[macro_export]
macro_rules! serde_as_text {
    ($name:ty) => {
        impl $crate::serde::Serialize for $name {
            fn serialize<S: $crate::serde::Serializer>(&self, serializer: S) -> ::std::result::Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(from: D) -> ::std::result::Result<Self, D::Error> {
                let text = <::std::string::String as $crate::serde::Deserialize>::deserialize(from)?;
                text.parse().map_err($crate::serde::de::Error::custom)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_control_characters() {
        for (text, is) in [("", false), ("é", true), ("éa", true), ("éab", false), ("a\n", false), ("\u{9f}", false)]
        {
            assert_eq!(is_line(text, 1..=2), is, "{text:?}");
        }
    }
}
