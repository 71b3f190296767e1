//! Events other than uplinks, as history has them: the names are those of the handler's events.

use std::{borrow::Cow, mem};

use bytes::Bytes;
use serde_json::value::{RawValue, to_raw_value};
use types::Timestamp;

use crate::message::raw_object::RawObject;

/// The name of a device that joined.
pub const JOINED: &str = "activations";
/// The name of a device that could not join.
pub const NOT_JOINED: &str = "activations/errors";
/// The name of what is said about an uplink.
pub const UPLINK_ERROR: &str = "up/errors";
/// The name of a downlink that the network has, and has not sent yet.
pub const DOWNLINK_SCHEDULED: &str = "down/scheduled";
/// The name of a downlink that was sent.
pub const DOWNLINK_SENT: &str = "down/sent";
/// The name of a downlink that its device has acknowledged.
pub const DOWNLINK_ACKNOWLEDGED: &str = "down/acks";
/// The name of a downlink that was refused or not acknowledged, or that is not sent.
pub const DOWNLINK_FAILED: &str = "down/errors";

/// The failure of a downlink that its device should have acknowledged.
pub const NOT_ACKNOWLEDGED: &str = "the device did not acknowledge the downlink";

/// An event other than an uplink, as its network or the bridge has published it.
pub struct ReceivedEvent {
    /// The name of the handler's event of that kind, or the network's own name if the handler has none.
    pub kind: &'static str,
    /// Time of the event.
    pub received: Timestamp,
    /// The JSON of the event.
    pub body: Bytes,
    /// The reason why a downlink or a join failed.
    pub failure: Option<String>,
}

/// The JSON of an event without a key in one of its objects: history is no place for session keys.
pub fn without_key(body: Bytes, object: &str, key: &str) -> Bytes {
    remove_key(&body, object, key).unwrap_or(body)
}

/// None if there is no such key.
fn remove_key(body: &[u8], object: &str, key: &str) -> Option<Bytes> {
    let mut members = RawObject::parse(body).ok()?;
    let mut inner = RawObject::parse(members.parsed(object)?.get().as_bytes()).ok()?;
    if !inner.has(key) {
        return None;
    }
    inner.remove(key);
    members.set(object, to_raw_value(&inner).ok()?, "");
    serde_json::to_vec(&members).ok().map(Bytes::from)
}

/// JSON without spaces between its parts, as history has it; none of what is no JSON. All else stays, to the digit.
pub(super) fn compact(json: &[u8]) -> Option<Cow<'_, str>> {
    let json = serde_json::from_slice::<&RawValue>(json).ok()?.get();
    if !json.bytes().any(|byte| byte.is_ascii_whitespace()) {
        return Some(json.into());
    }
    let (mut is_in_text, mut is_escaped) = (false, false);
    let is_kept = |character: &char| {
        let was_escaped = mem::take(&mut is_escaped);
        match character {
            '"' if !was_escaped => is_in_text = !is_in_text,
            '\\' if !was_escaped => is_escaped = true,
            _ => {}
        }
        is_in_text || !character.is_ascii_whitespace()
    };
    Some(json.chars().filter(is_kept).collect::<String>().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_spaces_between_the_parts_of_json_go() {
        for (json, expected) in [
            (r#"{"a":1.50}"#, Some(r#"{"a":1.50}"#)),
            ("\n{ \"a b\" :\t[ 1e3 ,\r\n2 ] }\n", Some(r#"{"a b":[1e3,2]}"#)),
            (r#"{ "a": "x \" : \\", "b": " " }"#, Some(r#"{"a":"x \" : \\","b":" "}"#)),
            (" 7 ", Some("7")),
            ("", None),
            ("{\"a\": 1} 2", None),
            ("\u{a}$bf75", None),
        ] {
            assert_eq!(compact(json.as_bytes()).as_deref(), expected, "{json}");
        }
        assert_eq!(compact(b"\"\xff\""), None);
    }

    #[test]
    fn a_key_is_left_out_and_all_else_stays() {
        let with_key = r#"{"a":1.50,"join":{"id":"x","key":{"aes":"AQ=="}},"b":2}"#;
        for (json, expected) in [
            (with_key, r#"{"a":1.50,"join":{"id":"x"},"b":2}"#),
            (r#"{"join": {"id":1},"key":2}"#, r#"{"join": {"id":1},"key":2}"#),
            (r#"{"join":7}"#, r#"{"join":7}"#),
            ("no JSON", "no JSON"),
        ] {
            assert_eq!(without_key(Bytes::from_static(json.as_bytes()), "join", "key"), expected);
        }
    }
}
