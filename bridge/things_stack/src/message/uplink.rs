//! The uplink message: what its formatter needs, and the same message with a decoded payload.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bridge::message::raw_object::RawObject;
use client::things_stack::VersionIds;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use types::Timestamp;

use crate::formatter::{decoded::Decoded, measurements::Measurements};

const DECODED: [&str; 4] =
    ["decoded_payload", "decoded_payload_warnings", "normalized_payload", "normalized_payload_warnings"];

/// An `ApplicationUp` of The Things Stack with an `uplink_message`.
pub(crate) struct UplinkMessage<'a> {
    members: RawObject<'a>,
    pub(super) uplink: RawObject<'a>,
    pub(crate) port: u8,
    pub(crate) payload: Vec<u8>,
    pub(crate) received_at: Option<Timestamp>,
    pub(crate) version: Option<VersionIds>,
    pub(crate) identity: Identity,
}

/// Members that are equal in all copies of a message, also those that come from the storage integration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    session_key_id: String,
    pub(super) f_cnt: u32,
    received_at_ms: i64,
    port: u8,
    payload: String,
}

/// Reasons why a message cannot be decoded. It is published as it is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("it is not JSON: choose the JSON format")]
    NotJson,
    #[error("`{0}` is missing or malformed")]
    Member(&'static str),
}

impl<'a> UplinkMessage<'a> {
    pub(crate) fn parse(message: &'a [u8]) -> Result<Self, Malformed> {
        let members = RawObject::parse(message).map_err(|_| Malformed::NotJson)?;
        let uplink = members.parsed("uplink_message").ok_or(Malformed::Member("uplink_message"))?;
        let uplink = RawObject::parse(uplink.get().as_bytes()).map_err(|_| Malformed::Member("uplink_message"))?;
        // What is zero or empty is left out.
        let port: u8 = member(&uplink, "f_port")?;
        let f_cnt: u32 = member(&uplink, "f_cnt")?;
        let payload: String = member(&uplink, "frm_payload")?;
        let received_at: Option<Timestamp> = uplink.get("received_at").or_else(|| members.get("received_at"));
        Ok(Self {
            port,
            payload: STANDARD.decode(&payload).map_err(|_| Malformed::Member("frm_payload"))?,
            received_at,
            version: uplink.get("version_ids").filter(|version: &VersionIds| !version.brand_id.is_empty()),
            identity: Identity {
                session_key_id: member(&uplink, "session_key_id")?,
                f_cnt,
                received_at_ms: received_at.map_or(0, Timestamp::as_millis),
                port,
                payload,
            },
            members,
            uplink,
        })
    }

    /// Returns true if a formatter can decode it: it has a port of the application, and is not encrypted.
    pub(crate) fn is_decodable(&self) -> bool {
        self.port > 0 && !self.uplink.has("app_s_key")
    }

    /// The payload that The Things Stack decoded itself.
    pub(crate) fn decoded_payload(&self) -> Option<&RawValue> {
        self.uplink.raw("decoded_payload").filter(|object| object.get() != "null")
    }

    /// Returns the ids that tie the message to The Things Stack's own events about it.
    pub(crate) fn correlation_ids(&self) -> Vec<String> {
        self.members.get("correlation_ids").unwrap_or_default()
    }

    /// The message with this result of its formatter, or without any.
    pub(crate) fn into_json(mut self, decoded: Option<Decoded>) -> serde_json::Result<Vec<u8>> {
        DECODED.iter().for_each(|name| self.uplink.remove(name));
        if let Some(Decoded { uplink, normalized: Measurements { valid: normalized, warnings: normalized_warnings } }) =
            decoded
        {
            let warnings = uplink.warnings;
            // In this order, each behind the payload, so that the last one comes first.
            if !normalized_warnings.is_empty() {
                self.uplink.set("normalized_payload_warnings", to_raw_value(&normalized_warnings)?, "frm_payload");
            }
            if !normalized.is_empty() {
                self.uplink.set("normalized_payload", to_raw_value(&normalized)?, "frm_payload");
            }
            if !warnings.is_empty() {
                self.uplink.set("decoded_payload_warnings", to_raw_value(&warnings)?, "frm_payload");
            }
            if let Some(object) = uplink.object {
                self.uplink.set("decoded_payload", object, "frm_payload");
            }
        }
        self.members.set("uplink_message", to_raw_value(&self.uplink)?, "");
        serde_json::to_vec(&self.members)
    }
}

fn member<T: DeserializeOwned + Default>(members: &RawObject<'_>, name: &'static str) -> Result<T, Malformed> {
    if members.has(name) { members.get(name).ok_or(Malformed::Member(name)) } else { Ok(T::default()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bridge::codec::outcome;

    const MESSAGE: &str = r#"{"end_device_ids":{"device_id":"dev1"},"received_at":"2026-11-22T16:45:56Z","uplink_message":{"session_key_id":"AX==","f_port":2,"f_cnt":7,"frm_payload":"AQID","decoded_payload":{"old":1},"rx_metadata":[{"snr":7.50}],"received_at":"2026-11-22T16:45:55.231022372Z","version_ids":{"brand_id":"b","model_id":"m"}},"new":1e0}"#;

    #[test]
    fn reads_what_a_formatter_needs_and_keeps_everything_else() {
        let message = UplinkMessage::parse(MESSAGE.as_bytes()).unwrap();
        assert_eq!((message.port, message.payload.as_slice()), (2, &[1, 2, 3][..]));
        assert_eq!(message.received_at.unwrap().as_nanos(), 1_795_365_955_231_022_372);
        assert_eq!(message.version.as_ref().unwrap().model_id, "m");
        assert_eq!(message.decoded_payload().unwrap().get(), r#"{"old":1}"#);
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let uplink = outcome::Decoded { object: Some(raw(r#"{"t":1.0}"#)), warnings: vec!["w".to_owned()] };
        let normalized = Measurements { valid: vec![raw(r#"{"air":{}}"#)], warnings: Vec::new() };
        let decoded = Decoded { uplink, normalized };
        let json = String::from_utf8(message.into_json(Some(decoded)).unwrap()).unwrap();
        let expected = MESSAGE.replace(
            r#""decoded_payload":{"old":1}"#,
            r#""decoded_payload":{"t":1.0},"decoded_payload_warnings":["w"],"normalized_payload":[{"air":{}}]"#,
        );
        assert_eq!(json, expected);
    }

    #[test]
    fn a_message_that_cannot_be_decoded_has_no_decoded_payload() {
        let message = UplinkMessage::parse(MESSAGE.as_bytes()).unwrap();
        let json = String::from_utf8(message.into_json(None).unwrap()).unwrap();
        assert_eq!(json, MESSAGE.replace(r#""decoded_payload":{"old":1},"#, ""));
    }

    #[test]
    fn copies_have_the_same_identity() {
        let parse = |text: &str| UplinkMessage::parse(text.as_bytes()).unwrap().identity;
        // The storage integration rounds times, and leaves out what is not stored.
        let stored = MESSAGE.replace("231022372Z", "231022Z").replace(r#","new":1e0"#, "");
        assert_eq!(parse(MESSAGE), parse(&stored));
        assert_ne!(parse(MESSAGE), parse(&MESSAGE.replace(r#""f_cnt":7"#, r#""f_cnt":8"#)));
    }

    #[test]
    fn says_what_is_missing() {
        for (text, expected) in [
            ("\u{a}$bf75", "JSON"),
            ("{}", "uplink_message"),
            (r#"{"uplink_message":[]}"#, "uplink_message"),
            (r#"{"uplink_message":{"f_port":"x"}}"#, "f_port"),
            (r#"{"uplink_message":{"f_port":1,"frm_payload":"&"}}"#, "frm_payload"),
        ] {
            let error = UplinkMessage::parse(text.as_bytes()).err().unwrap().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
