//! Serialization as in v2's gRPC gateway, where serde would differ.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

/// The schema of [`bytes`].
#[derive(JsonSchema)]
#[schemars(inline, description = "", extend("contentEncoding" = "base64"))]
pub(super) struct Base64(#[expect(dead_code, reason = "only its schema is used")] String);

/// Reads `null` like a member that is not there.
pub(super) fn null_is_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Returns true if a member with this value is omitted.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Numbers, which may also be strings.
pub(super) mod number {
    use std::{fmt::Display, str::FromStr};

    use serde::{Deserialize, Deserializer, de::Error};

    /// Maximum length of a text that an error repeats, in bytes.
    const EXCERPT_BYTES_MAX: usize = 32;

    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a number, or a text that is one, is needed")]
    enum Written {
        Number(serde_json::Number),
        Text(String),
    }

    /// Accepts a number or a string; `null` is zero.
    pub(in crate::rest) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display> + Default,
        D: Deserializer<'de>,
    {
        let text = match Option::<Written>::deserialize(deserializer)? {
            None => return Ok(T::default()),
            Some(Written::Number(number)) => number.to_string(),
            Some(Written::Text(text)) => text,
        };
        text.parse().map_err(|error| {
            let excerpt = &text[..text.floor_char_boundary(EXCERPT_BYTES_MAX)];
            D::Error::custom(format!("number `{excerpt}` not valid: {error}"))
        })
    }
}

/// 64-bit numbers, which are written as strings because JavaScript would round them.
pub(super) mod text_number {
    use std::fmt::Display;

    use serde::Serializer;

    pub(in crate::rest) use super::number::deserialize;

    pub(in crate::rest) fn serialize<S: Serializer>(number: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }
}

/// Single-precision numbers, which are written without a fraction when they have none.
pub(super) mod float {
    use serde::Serializer;

    pub(in crate::rest) use super::number::deserialize;

    /// Up to here every integer is exact in an `f32`.
    const WHOLE_MAX: f32 = 16_777_216.0;

    pub(in crate::rest) fn serialize<S: Serializer>(number: &f32, serializer: S) -> Result<S::Ok, S::Error> {
        if number.fract() == 0.0 && number.abs() <= WHOLE_MAX {
            serializer.serialize_i32(*number as i32)
        } else {
            serializer.serialize_f32(*number)
        }
    }
}

/// Bytes as standard base64.
pub(super) mod bytes {
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(in crate::rest) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&base64::display::Base64Display::new(bytes, &STANDARD))
    }

    /// Accepts standard base64; `null` is empty.
    pub(in crate::rest) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
        types::decode_base64(&text).map_err(|error| D::Error::custom(format!("base64 not valid: {error}")))
    }
}

/// Timestamps as the account service writes them, with milliseconds.
pub(super) mod millis {
    use serde::{Deserialize, Deserializer, Serializer};
    use types::Timestamp;

    pub(in crate::rest) fn serialize<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&time.to_rfc3339_millis())
    }

    pub(in crate::rest) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        Timestamp::deserialize(deserializer)
    }

    /// The same for an optional timestamp.
    pub(in crate::rest) mod optional {
        use serde::{Deserialize, Deserializer, Serializer};
        use types::Timestamp;

        pub(in crate::rest) fn serialize<S: Serializer>(
            time: &Option<Timestamp>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match time {
                Some(time) => super::serialize(time, serializer),
                None => serializer.serialize_none(),
            }
        }

        pub(in crate::rest) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<Timestamp>, D::Error> {
            Option::deserialize(deserializer)
        }
    }
}
