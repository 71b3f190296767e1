//! Events other than uplinks as the history of the bridge has them.

use bridge::{
    message::radio::lenient,
    record::event::{
        DOWNLINK_ACKNOWLEDGED, DOWNLINK_FAILED, DOWNLINK_SENT, JOINED, NOT_ACKNOWLEDGED, NOT_JOINED, ReceivedEvent,
        UPLINK_ERROR, without_key,
    },
};
use bytes::Bytes;
use serde::Deserialize;
use types::Timestamp;

/// Codes of `log` events that report a downlink that will not be sent.
pub(crate) const DOWNLINK_CODES: [&str; 5] =
    ["DOWNLINK_PAYLOAD_SIZE", "DOWNLINK_CODEC", "DOWNLINK_GATEWAY", "F_CNT_DOWN", "EXPIRED"];
/// Codes of `log` events about an uplink.
const UPLINK_CODES: [&str; 4] = ["UPLINK_CODEC", "UPLINK_F_CNT_RESET", "UPLINK_MIC", "UPLINK_F_CNT_RETRANSMISSION"];

/// Kinds of records whose names are those of the network: the handler has no such events.
pub const NETWORK_KINDS: [&str; 4] = ["log", "status", "location", "integration"];

/// The members that tell events apart. A proto3 writer may leave out what is false or empty.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Members {
    #[serde(deserialize_with = "lenient")]
    time: Option<Timestamp>,
    #[serde(deserialize_with = "lenient")]
    acknowledged: bool,
    #[serde(deserialize_with = "lenient")]
    code: String,
    #[serde(deserialize_with = "lenient")]
    description: String,
}

/// The event with this name and this JSON, which came now; none if no such event is known.
pub(crate) fn to_received(name: &str, body: Bytes, now: Timestamp) -> Option<ReceivedEvent> {
    let Members { time, acknowledged, code, description } = serde_json::from_slice(&body).unwrap_or_default();
    let (kind, failure) = match name {
        "join" => (JOINED, None),
        "txack" => (DOWNLINK_SENT, None),
        "ack" if acknowledged => (DOWNLINK_ACKNOWLEDGED, None),
        "ack" => (DOWNLINK_FAILED, Some(NOT_ACKNOWLEDGED.to_owned())),
        "log" if DOWNLINK_CODES.contains(&&*code) => (DOWNLINK_FAILED, Some(description)),
        "log" if code == "OTAA" => (NOT_JOINED, Some(description)),
        "log" if UPLINK_CODES.contains(&&*code) => (UPLINK_ERROR, None),
        name => (NETWORK_KINDS.into_iter().find(|kind| *kind == name)?, None),
    };
    let body = if kind == JOINED { without_key(body, "joinServerContext", "appSKey") } else { body };
    Some(ReceivedEvent { kind, received: time.unwrap_or(now), body, failure })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_names_of_the_handlers_and_downlinks_and_joins_fail() {
        for (name, body, kind, failure) in [
            ("join", r#"{"devAddr":"00030000"}"#, "activations", None),
            ("txack", r#"{"downlinkId":1}"#, "down/sent", None),
            ("ack", r#"{"acknowledged":true}"#, "down/acks", None),
            ("ack", r#"{"fCntDown":7}"#, "down/errors", Some("the device did not acknowledge the downlink")),
            ("log", r#"{"code":"EXPIRED","description":"late"}"#, "down/errors", Some("late")),
            ("log", r#"{"code":"OTAA","description":"nonce"}"#, "activations/errors", Some("nonce")),
            ("log", r#"{"code":"UPLINK_MIC","description":"x"}"#, "up/errors", None),
            ("log", r#"{"code":["x"],"description":7}"#, "log", None),
            ("status", r#"{"margin":7}"#, "status", None),
            ("location", "{}", "location", None),
            ("integration", "{}", "integration", None),
        ] {
            let event = to_received(name, Bytes::from_static(body.as_bytes()), Timestamp::default()).unwrap();
            assert_eq!((event.kind, event.failure.as_deref()), (kind, failure), "{name} {body}");
            assert_eq!(event.body, body);
        }
        let joined = r#"{"joinServerContext":{"sessionKeyId":"1","appSKey":{"kekLabel":"","aesKey":"AQ=="}}}"#;
        let joined = to_received("join", Bytes::from_static(joined.as_bytes()), Timestamp::default()).unwrap();
        assert_eq!(joined.body, r#"{"joinServerContext":{"sessionKeyId":"1"}}"#);
        assert!(to_received("of-next-year", Bytes::new(), Timestamp::default()).is_none());
    }

    #[test]
    fn the_time_is_that_of_the_event_or_now() {
        let received = |body: &'static str| {
            let now = Timestamp::from_millis(7);
            to_received("status", Bytes::from_static(body.as_bytes()), now).unwrap().received.as_millis()
        };
        assert_eq!(received(r#"{"time":"2026-11-22T16:45:55.231022372+00:00"}"#), 1_795_365_955_231);
        assert_eq!(received(r#"{"time":"yesterday"}"#), 7);
        assert_eq!(received("{}"), 7);
    }
}
