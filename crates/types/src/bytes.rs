//! EUIs, addresses, nonces and keys of a fixed length, written in hexadecimal.

mod prefix;

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::{Zeroize, ZeroizeOnDrop};

pub use self::prefix::{DevAddrPrefix, PrefixError};

/// A text or byte slice that does not have the right length or digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} not valid: must be {length} bytes, which are {} hexadecimal digits", length * 2)]
pub struct BytesError {
    /// The kind of value.
    pub what: &'static str,
    /// Its length in bytes.
    pub length: usize,
}

macro_rules! fixed_bytes {
    ($name:ident, $length:literal) => {
        impl $name {
            /// The length in bytes.
            pub const LENGTH: usize = $length;

            /// Wraps bytes, most significant first.
            pub fn new(bytes: [u8; $length]) -> Self {
                Self(bytes)
            }

            /// Returns the bytes, most significant first.
            pub fn as_bytes(&self) -> &[u8; $length] {
                &self.0
            }

            /// Returns true if all bytes are zero, which stands for "none".
            pub fn is_zero(&self) -> bool {
                self.0.iter().all(|byte| *byte == 0)
            }

            /// Formats as upper-case hexadecimal digits, or as an empty string if all bytes are zero, as v2 clients
            /// expect.
            pub fn to_hex(&self) -> String {
                if self.is_zero() { String::new() } else { hex::encode_upper(self.0) }
            }
        }

        impl TryFrom<&[u8]> for $name {
            type Error = BytesError;

            fn try_from(bytes: &[u8]) -> Result<Self, BytesError> {
                let bytes = bytes.try_into().map_err(|_| BytesError { what: stringify!($name), length: $length })?;
                Ok(Self(bytes))
            }
        }

        impl FromStr for $name {
            type Err = BytesError;

            fn from_str(text: &str) -> Result<Self, BytesError> {
                let mut bytes = [0; $length];
                if !text.is_empty() {
                    hex::decode_to_slice(text, &mut bytes)
                        .map_err(|_| BytesError { what: stringify!($name), length: $length })?;
                }
                Ok(Self(bytes))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.to_hex())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let digits = if generator.contract().is_serialize() { "0-9A-F" } else { "0-9A-Fa-f" };
                json_schema!({
                    "type": "string",
                    "description": concat!(stringify!($length), " bytes as hexadecimal digits; empty for none."),
                    "pattern": format!("^([{digits}]{{{}}})?$", $length * 2),
                })
            }
        }
    };
}

macro_rules! address {
    ($(#[doc = $doc:literal])+ $name:ident, $length:literal) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $length]);

        fixed_bytes!($name, $length);

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&hex::encode_upper(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "{}({self})", stringify!($name))
            }
        }
    };
}

macro_rules! key {
    ($(#[doc = $doc:literal])+ $name:ident, $length:literal) => {
        $(#[doc = $doc])+
        #[derive(Clone, Default, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
        pub struct $name([u8; $length]);

        fixed_bytes!($name, $length);

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(concat!(stringify!($name), "(…)"))
            }
        }
    };
}

address!(
    /// The EUI of an application or join server.
    AppEui,
    8
);
address!(
    /// The EUI of a device.
    DevEui,
    8
);
address!(
    /// The address of a device during a session.
    DevAddr,
    4
);
address!(
    /// A random number that a device sends to join; each counts once.
    DevNonce,
    2
);
address!(
    /// A random number that a device receives when it joins, from which session keys are derived.
    AppNonce,
    3
);
address!(
    /// The network that a device joins.
    NetId,
    3
);
key!(
    /// The root key with which a device joins.
    AppKey,
    16
);
key!(
    /// The session key that encrypts application payloads.
    AppSKey,
    16
);
key!(
    /// The session key that authenticates frames.
    NwkSKey,
    16
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_cases_and_writes_upper_case() {
        assert_eq!("70b3d57ed0000001".parse::<AppEui>().unwrap().to_hex(), "70B3D57ED0000001");
        assert_eq!("26012345".parse::<DevAddr>().unwrap().as_bytes(), &[0x26, 0x01, 0x23, 0x45]);
    }

    #[test]
    fn an_empty_text_is_all_zeros() {
        assert!("".parse::<DevEui>().unwrap().is_zero());
        assert_eq!(DevEui::default().to_hex(), "");
    }

    // Conformance: Lengths of EUIs, keys and addresses
    #[test]
    fn refuses_wrong_lengths_and_digits() {
        for text in ["70B3D57ED000000", "70B3D57ED00000001", "70B3D57ED000000G"] {
            assert!(text.parse::<AppEui>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_key_does_not_print_itself() {
        let key: AppKey = "2B7E151628AED2A6ABF7158809CF4F3C".parse().unwrap();
        assert_eq!(format!("{key:?}"), "AppKey(…)");
    }
}
