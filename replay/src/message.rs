//! An uplink as a network reports it, in JSON: payload, port, time and object are found by the names that each network
//! uses.
//!
//! A payload in Base64 can also be read as hexadecimal, and the reverse, so a message is only read if its other members
//! show which network wrote it.

mod envelope;
mod networks;
mod object;

use std::borrow::Cow;

use crate::RecordedUplink;

/// Reasons why a text is no uplink.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// It is not JSON.
    #[error("not JSON in line {line}: {problem}")]
    Json {
        /// The line, from 1.
        line: usize,
        /// The problem there.
        problem: String,
    },
    /// It is an uplink, but not as its network writes it.
    #[error("{0}")]
    Invalid(Cow<'static, str>),
}

impl MessageError {
    fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Invalid(reason.into())
    }
}

/// The uplink in a message of ChirpStack, The Things Stack, The Things Network 2, LORIOT, or in a record of our own; none
/// if it is something else, such as a join.
pub(crate) fn parse(text: &str) -> Result<Option<RecordedUplink>, MessageError> {
    envelope::search(envelope::message(text)?, &networks::find)
}

/// The same where there must be one.
pub fn parse_uplink(text: &str) -> Result<RecordedUplink, MessageError> {
    parse(text)?.ok_or(MessageError::Invalid(Cow::Borrowed(
        "it has no payload as in ChirpStack (`data`), The Things Stack (`uplink_message.frm_payload`) or The Things \
         Network 2 (`payload_raw`)",
    )))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use types::Timestamp;

    use super::*;

    /// Messages that the playground reads, too (`tests/it/playground/messages.mjs`): what is in each, or why it is no
    /// uplink.
    const CASES: &str = include_str!("message/cases.json");

    fn cases(kind: &str) -> Vec<Value> {
        let cases: Value = serde_json::from_str(CASES).unwrap();
        cases[kind].as_array().unwrap().clone()
    }

    #[test]
    fn finds_payload_port_and_time_of_each_network() {
        for case in cases("uplinks") {
            let text = case["text"].as_str().unwrap();
            let uplink = parse_uplink(text).unwrap();
            let time: Option<Timestamp> = case["time"].as_str().map(|time| time.parse().unwrap());
            assert_eq!(case["payload"], hex::encode(&uplink.payload), "{text}");
            assert_eq!((&case["port"], time), (&Value::from(uplink.port), uplink.time), "{text}");
        }
    }

    #[test]
    fn says_why_a_message_is_no_uplink() {
        let refusals = cases("refusals");
        let text = |case: &Value, name: &str| case[name].as_str().unwrap().to_owned();
        let shared = refusals.iter().map(|case| (text(case, "text"), text(case, "reason")));
        let own = [
            ("{\"result\": {\"uplink_message\": {}}}\n\n{\"result\": {}}", "after the first message: keep one"),
            ("a/b {\"fPort\": 2, \"data\": \"AQI=\"}\na/b {}", "after the first message: keep one"),
            ("a/b AQI=", "not JSON in line 1"),
            ("", "not JSON in line 1: it is empty"),
        ];
        for (text, reason) in shared.chain(own.map(|(text, reason)| (text.to_owned(), reason.to_owned()))) {
            let error = parse_uplink(&text).unwrap_err().to_string();
            assert!(error.contains(&reason), "{text}: {error}");
        }
    }
}
