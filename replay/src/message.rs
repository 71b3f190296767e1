//! An uplink as a network reports it, in JSON: payload, port, time and object are found by the names that each network
//! uses.
//!
//! A payload in Base64 can also be read as hexadecimal, and the reverse, so a message is only read if its other members
//! show which network wrote it.

mod envelope;
mod networks;
mod object;

use std::borrow::Cow;

use crate::Stored;

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
pub(crate) fn parse(text: &str) -> Result<Option<Stored>, MessageError> {
    envelope::search(envelope::message(text)?, &networks::find)
}

/// The same where there must be one.
pub fn parse_uplink(text: &str) -> Result<Stored, MessageError> {
    parse(text)?.ok_or(MessageError::Invalid(Cow::Borrowed(
        "it has no payload as in ChirpStack (`data`), The Things Stack (`uplink_message.frm_payload`) or The Things \
         Network 2 (`payload_raw`)",
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_payload_port_and_time_of_each_network() {
        let time = |text: &str| Some(text.parse().unwrap());
        for (text, port, expected) in [
            (
                r#"{"time": "2026-01-02T03:04:05Z", "fPort": 2, "data": "AQI=", "deviceInfo": {}}"#,
                2,
                time("2026-01-02T03:04:05Z"),
            ),
            (r#"{"fPort": 7, "data": "AQI=", "publishedAt": "nonsense"}"#, 7, None),
            (
                r#"{"end_device_ids": {}, "received_at": "2026-01-02T03:04:06Z", "uplink_message": {"f_port": 3, "frm_payload": "AQI="}}"#,
                3,
                time("2026-01-02T03:04:06Z"),
            ),
            (
                r#"{"name": "as.up.data.forward", "data": {"uplink_message": {"f_port": 3, "frm_payload": "AQI="}}}"#,
                3,
                None,
            ),
            (
                r#"{"port": 4, "payload_raw": "AQI=", "metadata": {"time": "2026-01-02T03:04:07Z"}}"#,
                4,
                time("2026-01-02T03:04:07Z"),
            ),
            (r#"{"data": "AQI="}"#, 0, None),
            (
                r#"{"cmd": "rx", "EUI": "0102", "ts": 1767323045000, "port": 2, "data": "0102"}"#,
                2,
                time("2026-01-02T03:04:05Z"),
            ),
            (r#"v3/app@tenant/devices/d/up {"uplink_message": {"f_port": 3, "frm_payload": "AQI="}}"#, 3, None),
            ("application/a/device/d/event/up {\"fPort\": 2, \"data\": \"AQI=\"}\n", 2, None),
            (r#"{"result": {"uplink_message": {"f_port": 3, "frm_payload": "AQI="}}}"#, 3, None),
            (r#"[{"fPort": 2, "data": "AQI="}]"#, 2, None),
            (r#"{"topic": "a/b", "payload": {"fPort": 2, "data": "AQI="}, "qos": 0, "_msgid": "1"}"#, 2, None),
            (r#"{"topic": "a/b", "payload": "{\"fPort\": 2, \"data\": \"AQI=\"}"}"#, 2, None),
            (
                r#"{"payload": {"type": "Buffer", "data": [123, 34, 100, 97, 116, 97, 34, 58, 34, 65, 81, 73, 61, 34, 125]}}"#,
                0,
                None,
            ),
            (r#"{"port": 4, "payload_raw": {"type": "Buffer", "data": [1, 2]}, "payload_fields": {}}"#, 4, None),
        ] {
            let uplink = parse_uplink(text).unwrap();
            assert_eq!((uplink.payload, uplink.port, uplink.time), (vec![1, 2], port, expected), "{text}");
        }
    }

    #[test]
    fn a_payload_that_networks_leave_out_is_empty() {
        for (text, port) in [
            (r#"{"deviceInfo": {}, "fCnt": 1, "fPort": 2, "rxInfo": [], "object": {}}"#, 2),
            (r#"{"devEUI": "AQ==", "fCnt": 1, "fPort": 2, "data": null, "rxInfo": []}"#, 2),
            (r#"{"deviceInfo": {}, "fPort": 2, "data": ""}"#, 2),
            (r#"{"uplink_message": {"f_port": 3, "rx_metadata": []}}"#, 3),
            (r#"{"result": {"uplink_message": {"f_port": 3}}}"#, 3),
            (r#"{"payload_raw": null, "port": 4}"#, 4),
        ] {
            let uplink = parse_uplink(text).unwrap();
            assert_eq!((uplink.payload, uplink.port, uplink.time), (Vec::new(), port, None), "{text}");
        }
    }

    #[test]
    fn says_why_a_message_is_no_uplink() {
        for (text, reason) in [
            ("{", "not JSON"),
            ("{}", "it has no payload"),
            (r#"{"data": {}}"#, "it has no payload"),
            (r#"{"data": "!"}"#, "not Base64"),
            (r#"{"data": "", "fPort": 256}"#, "not a number from 0 to 255"),
            (r#"{"data": "", "fPort": "1"}"#, "not a number from 0 to 255"),
            (r#"{"cmd": "rx", "EUI": "0102", "port": 2, "data": "AQI="}"#, "not hexadecimal, as LORIOT's is"),
            (r#"{"cmd": "txd", "EUI": "0102", "data": "0102"}"#, "its `cmd` is \"txd\""),
            (r#"{"data": "aa01"}"#, "may be Base64 or hexadecimal"),
            (r#"{"data": "AQI=", "port": 2}"#, "no message of ChirpStack"),
            (r#"{"payload": "AQI=", "port": 2}"#, "it has no payload"),
            (r#"{"payload": {"type": "Buffer", "data": [1, 2]}}"#, "it has no payload"),
            (r#"{"deviceInfo": {}, "time": "2026-01-02T03:04:05Z", "devAddr": "01020304"}"#, "it has no payload"),
            (r#"{"deviceInfo": {}, "queueItemId": "1", "acknowledged": true, "fCntDown": 4}"#, "it has no payload"),
            (r#"{"end_device_ids": {}, "join_accept": {}}"#, "it has no payload"),
            (r#"[{"fPort": 2, "data": "AQI="}, {"fPort": 2, "data": "AQI="}]"#, "a list of 2 messages"),
            ("{\"result\": {\"uplink_message\": {}}}\n\n{\"result\": {}}", "after the first message: keep one"),
            ("a/b {\"fPort\": 2, \"data\": \"AQI=\"}\na/b {}", "after the first message: keep one"),
            ("a/b AQI=", "not JSON in line 1"),
            ("", "not JSON in line 1: it is empty"),
        ] {
            let error = parse_uplink(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
