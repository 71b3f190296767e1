//! Messages other than uplinks as the history of the bridge has them.

use std::collections::BTreeMap;

use bridge::{
    message::radio::lenient,
    record::event::{
        DOWNLINK_ACKNOWLEDGED, DOWNLINK_FAILED, DOWNLINK_SCHEDULED, DOWNLINK_SENT, JOINED, NOT_ACKNOWLEDGED,
        ReceivedEvent, without_key,
    },
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use types::Timestamp;

/// Maximum length of the text of an error with its attributes, in bytes: a format may name one many times.
const TEXT_BYTES_MAX: usize = 4096;

/// Kinds of records whose names are those of the network: the handler has no such events.
pub const NETWORK_KINDS: [&str; 3] = ["down/invalidated", "service/data", "location/solved"];

/// The members that history needs.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Members {
    #[serde(deserialize_with = "lenient")]
    received_at: Option<Timestamp>,
    #[serde(deserialize_with = "lenient")]
    downlink_failed: Failed,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Failed {
    error: ErrorDetails,
}

/// The reason why a downlink failed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ErrorDetails {
    /// A text such as `no {what} for the device`.
    message_format: String,
    attributes: BTreeMap<String, Value>,
}

impl ErrorDetails {
    /// The error, for users. An attribute that would make it too long stays a name.
    pub(crate) fn text(&self) -> String {
        let mut text = self.message_format.clone();
        if text.len() > TEXT_BYTES_MAX {
            return text;
        }
        for (name, value) in &self.attributes {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let name = format!("{{{name}}}");
            let added = text.matches(&*name).count().saturating_mul(value.len());
            if text.len().saturating_add(added) <= TEXT_BYTES_MAX {
                text = text.replace(&name, &value);
            }
        }
        text
    }
}

/// The message on a topic that ends in this way, which came now; none if no such message is recorded.
pub(crate) fn to_received(rest: &str, body: Bytes, now: Timestamp) -> Option<ReceivedEvent> {
    let Members { received_at, downlink_failed } = serde_json::from_slice(&body).unwrap_or_default();
    let (kind, failure) = match rest {
        "join" => (JOINED, None),
        "down/queued" => (DOWNLINK_SCHEDULED, None),
        "down/sent" => (DOWNLINK_SENT, None),
        "down/ack" => (DOWNLINK_ACKNOWLEDGED, None),
        "down/nack" => (DOWNLINK_FAILED, Some(NOT_ACKNOWLEDGED.to_owned())),
        "down/failed" => (DOWNLINK_FAILED, Some(downlink_failed.error.text())),
        // `up/normalized` is none of them: its uplink has the same.
        name => (NETWORK_KINDS.into_iter().find(|kind| *kind == name)?, None),
    };
    let body = if kind == JOINED { without_key(body, "join_accept", "app_s_key") } else { body };
    Some(ReceivedEvent { kind, received: received_at.unwrap_or(now), body, failure })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_have_the_names_of_the_handlers_events_and_downlinks_fail() {
        const FAILED: &str = r#"{"received_at":"2026-11-22T16:00:01Z","downlink_failed":{"downlink":{},
            "error":{"message_format":"no {what} for {n}","attributes":{"what":"path","n":7}}}}"#;
        for (rest, body, kind, failure) in [
            ("join", "{}", "activations", None),
            ("down/queued", "{}", "down/scheduled", None),
            ("down/sent", "{}", "down/sent", None),
            ("down/ack", "{}", "down/acks", None),
            ("down/nack", "{}", "down/errors", Some("the device did not acknowledge the downlink")),
            ("down/failed", FAILED, "down/errors", Some("no path for 7")),
            ("down/failed", r#"{"downlink_failed":7}"#, "down/errors", Some("")),
            ("location/solved", "{}", "location/solved", None),
        ] {
            let event = to_received(rest, Bytes::from_static(body.as_bytes()), Timestamp::from_millis(7)).unwrap();
            assert_eq!((event.kind, event.failure.as_deref()), (kind, failure), "{rest} {body}");
            let received = if body == FAILED { 1_795_363_201_000 } else { 7 };
            assert_eq!(event.received.as_millis(), received, "{rest}");
        }
        let joined = r#"{"join_accept":{"session_key_id":"AQ==","app_s_key":{"key":"AQ=="}}}"#;
        let joined = to_received("join", Bytes::from_static(joined.as_bytes()), Timestamp::default()).unwrap();
        assert_eq!(joined.body, r#"{"join_accept":{"session_key_id":"AQ=="}}"#);
        assert!(to_received("up/normalized", Bytes::new(), Timestamp::default()).is_none());
    }

    #[test]
    fn attributes_that_a_format_names_many_times_do_not_make_its_text_long() {
        let error: ErrorDetails = serde_json::from_value(json!({
            "message_format": format!("{} {{z}}", "{a}".repeat(100)),
            "attributes": {"a": "{b}".repeat(10), "b": "x".repeat(1000), "z": 7},
        }))
        .unwrap();
        assert_eq!(error.text(), format!("{} 7", "{b}".repeat(1000)));
    }
}
