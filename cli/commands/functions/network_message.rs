//! An uplink as a network reports it, in JSON: payload, port and time are found by the names that each network uses.

use std::path::Path;

use anyhow::{Context, anyhow};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use types::Timestamp;
use workbench::{BadInput, json_problem};

use super::values::{name, text};

/// Where each network has its payload in Base64, its port and its time: ChirpStack 4 and 3, The Things Stack with its
/// events around, The Things Network 2.
const NETWORKS: [(&str, &str, &[&str]); 4] = [
    ("/data", "/fPort", &["/time", "/publishedAt"]),
    ("/uplink_message/frm_payload", "/uplink_message/f_port", &["/uplink_message/received_at", "/received_at"]),
    ("/data/uplink_message/frm_payload", "/data/uplink_message/f_port", &["/data/uplink_message/received_at", "/time"]),
    ("/payload_raw", "/port", &["/metadata/time"]),
];

/// What functions get of an uplink.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Uplink {
    pub(super) payload: Vec<u8>,
    pub(super) port: u8,
    pub(super) time: Option<Timestamp>,
}

/// Reads a message from a file, or from standard input.
pub(super) fn read(file: &Path) -> anyhow::Result<Uplink> {
    let text = text(file)?;
    parse(&text).map_err(|error| BadInput::Request(format!("{} is not an uplink: {error:#}", name(file))).into())
}

fn parse(text: &str) -> anyhow::Result<Uplink> {
    let message: Value = serde_json::from_str(text)
        .map_err(|error| anyhow!("not JSON in line {}: {}", error.line(), json_problem(&error, text)))?;
    let of_network = NETWORKS.into_iter().find_map(|(payload, port, times)| {
        let payload = message.pointer(payload)?.as_str()?;
        Some((payload, message.pointer(port), times))
    });
    let (payload, port, times) = of_network.ok_or_else(|| {
        anyhow!("it has no payload as in ChirpStack (`data`), The Things Stack (`uplink_message.frm_payload`) or The Things Network 2 (`payload_raw`)")
    })?;
    let payload = STANDARD.decode(payload).map_err(|_| anyhow!("its payload is not Base64"))?;
    // Networks leave out what is zero.
    let port = port.map_or(Some(0), Value::as_u64).and_then(|port| u8::try_from(port).ok());
    let port = port.context("its port is not a number from 0 to 255")?;
    let time = times.iter().find_map(|path| message.pointer(path)?.as_str()?.parse().ok());
    Ok(Uplink { payload, port, time })
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
        ] {
            assert_eq!(parse(text).unwrap(), Uplink { payload: vec![1, 2], port, time: expected }, "{text}");
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
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
