//! Downlinks, as applications publish them.

use serde_json::{Map, Value, value::RawValue};
use types::Downlink;

use super::topics::invalid;
use crate::{HexBytes, Result};

/// Maximum size of a downlink as JSON, in bytes.
const DOWNLINK_BYTES_MAX: usize = 64 * 1024;

/// The content of a downlink. Texts in hexadecimal become bytes by `parse::<HexBytes>()`.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Bytes.
    Bytes(Vec<u8>),
    /// Fields for the application's encoder: a JSON object.
    Fields(Box<RawValue>),
}

/// The position of a downlink in the queue of its device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// In place of those that wait.
    #[default]
    Replace,
    /// Before them.
    First,
    /// After them.
    Last,
}

impl Schedule {
    fn as_str(self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::First => "first",
            Self::Last => "last",
        }
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<&[u8]> for Payload {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_owned())
    }
}

impl<const N: usize> From<[u8; N]> for Payload {
    fn from(bytes: [u8; N]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl From<HexBytes> for Payload {
    fn from(HexBytes(bytes): HexBytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Box<RawValue>> for Payload {
    fn from(fields: Box<RawValue>) -> Self {
        Self::Fields(fields)
    }
}

impl TryFrom<Map<String, Value>> for Payload {
    type Error = serde_json::Error;

    fn try_from(fields: Map<String, Value>) -> std::result::Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(&fields).map(Self::Fields)
    }
}

/// The message as JSON.
pub(super) fn json(payload: Payload, port: u8, confirmed: bool, schedule: Schedule) -> Result<Vec<u8>> {
    let (payload_raw, payload_fields) = match payload {
        Payload::Bytes(bytes) if bytes.is_empty() => {
            return Err(invalid("the payload is empty: give at least one byte, or fields".to_owned()));
        }
        Payload::Bytes(bytes) => (Some(bytes), None),
        Payload::Fields(fields) if !fields.get().trim_start().starts_with('{') => {
            return Err(invalid("the fields must be a JSON object".to_owned()));
        }
        Payload::Fields(fields) => (None, Some(fields)),
    };
    let schedule = Some(schedule.as_str().to_owned());
    let downlink = Downlink { port, confirmed, schedule, payload_raw, payload_fields };
    let json = serde_json::to_vec(&downlink).map_err(|error| invalid(format!("downlink not valid: {error}")))?;
    if json.len() > DOWNLINK_BYTES_MAX {
        return Err(invalid(format!("downlink not valid: it has more than {DOWNLINK_BYTES_MAX} bytes")));
    }
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(payload: impl Into<Payload>) -> String {
        String::from_utf8(json(payload.into(), 2, true, Schedule::Last).unwrap()).unwrap()
    }

    #[test]
    fn a_payload_may_have_any_of_four_forms() {
        let bytes = r#"{"port":2,"confirmed":true,"schedule":"last","payload_raw":"Af8="}"#;
        assert_eq!(text([1, 255]), bytes);
        assert_eq!(text(&[1, 255][..]), bytes);
        assert_eq!(text(vec![1, 255]), bytes);
        assert_eq!(text("01 ff".parse::<HexBytes>().unwrap()), bytes);
        let fields = r#"{"port":2,"confirmed":true,"schedule":"last","payload_fields":{"led":true}}"#;
        assert_eq!(text(Payload::try_from(Map::from_iter([("led".to_owned(), true.into())])).unwrap()), fields);
    }

    #[test]
    fn refuses_what_no_device_can_receive() {
        for payload in [Payload::from([]), Payload::Fields(RawValue::from_string("[1]".to_owned()).unwrap())] {
            assert!(json(payload, 1, false, Schedule::default()).is_err());
        }
    }
}
