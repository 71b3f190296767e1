//! An uplink as a network reports it, in JSON: payload, port and time are found by the names that each network uses.
//!
//! A payload in Base64 can also be read as hexadecimal, and the reverse, so a message is only read if its other members
//! show which network wrote it.

mod envelope;

use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};
use types::{HexBytes, Timestamp};
use workbench::BadInput;

use super::values::{name, text};

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

pub(super) fn parse(text: &str) -> anyhow::Result<Uplink> {
    let found = envelope::search(envelope::message(text)?, |message| {
        let networks = [things_stack, things_network_2, loriot, chirpstack];
        networks.into_iter().find_map(|network| network(message).transpose()).transpose()
    })?;
    found.ok_or_else(|| {
        anyhow!("it has no payload as in ChirpStack (`data`), The Things Stack (`uplink_message.frm_payload`) or The Things Network 2 (`payload_raw`)")
    })
}

type Object = Map<String, Value>;

/// `{"uplink_message": {"frm_payload": "AQ==", "f_port": 1}}`, also as the `data` of an event. The network leaves an
/// empty payload out.
fn things_stack(message: &Object) -> anyhow::Result<Option<Uplink>> {
    let event = message.get("data").and_then(Value::as_object);
    let Some((uplink, around)) = [Some(message), event]
        .into_iter()
        .flatten()
        .find_map(|around| Some((around.get("uplink_message")?.as_object()?, around)))
    else {
        return Ok(None);
    };
    let times = [uplink.get("received_at"), around.get("received_at"), message.get("time")];
    uplink_of(uplink.get("frm_payload"), uplink.get("f_port"), &times).map(Some)
}

/// `{"payload_raw": "AQ==", "port": 1, "metadata": {"time": …}}`.
fn things_network_2(message: &Object) -> anyhow::Result<Option<Uplink>> {
    let Some(payload) = message.get("payload_raw") else { return Ok(None) };
    let time = message.get("metadata").and_then(|metadata| metadata.get("time"));
    uplink_of(Some(payload), message.get("port"), &[time]).map(Some)
}

/// `{"cmd": "rx", "EUI": "0102030405060708", "port": 1, "data": "01", "ts": 1700000000000}`, in hexadecimal.
fn loriot(message: &Object) -> anyhow::Result<Option<Uplink>> {
    let [Some(command), Some(_), Some(data)] = ["cmd", "EUI", "data"].map(|name| message.get(name)) else {
        return Ok(None);
    };
    ensure!(
        matches!(command.as_str(), Some("rx" | "gw")),
        "its `cmd` is {command}, not \"rx\" or \"gw\" as LORIOT's are"
    );
    let payload = data.as_str().and_then(|data| data.parse().ok()).map(|HexBytes(bytes)| bytes);
    let payload = payload.context("its `data` is not hexadecimal, as LORIOT's is")?;
    let time = message.get("ts").and_then(Value::as_i64).map(Timestamp::from_millis);
    Ok(Some(Uplink { payload, port: port(message.get("port"))?, time }))
}

/// Members that only ChirpStack's uplinks have, in versions 4 and 3. People write `fPort` beside hexadecimal, too.
const OF_CHIRPSTACK: [&str; 4] = ["fCnt", "rxInfo", "deviceInfo", "devEUI"];

/// `{"deviceInfo": …, "data": "AQ==", "fPort": 1}`. The network leaves an empty payload out, or writes it as null.
fn chirpstack(message: &Object) -> anyhow::Result<Option<Uplink>> {
    let has = |name: &str| message.get(name).is_some_and(|value| !value.is_null());
    let data = message.get("data").filter(|data| !data.is_null());
    let is_own = OF_CHIRPSTACK.into_iter().any(has);
    match data {
        // Other events have the same device, but no frame.
        None if !(has("deviceInfo") || has("devEUI")) || !(has("rxInfo") || has("fPort")) => return Ok(None),
        Some(Value::String(data)) if !is_own => {
            ensure!(!has("port"), "it has `data` and `port`, which is no message of ChirpStack: use --base64 or --hex");
            let is_hex = data.parse::<HexBytes>().is_ok() && !data.is_empty();
            ensure!(!is_hex, "its `data` may be Base64 or hexadecimal: use --base64 or --hex");
        }
        Some(Value::String(_)) | None => {}
        Some(_) => return Ok(None),
    }
    uplink_of(data, message.get("fPort"), &[message.get("time"), message.get("publishedAt")]).map(Some)
}

/// An uplink of a payload in Base64, and of the first of `times` that is one.
fn uplink_of(payload: Option<&Value>, port: Option<&Value>, times: &[Option<&Value>]) -> anyhow::Result<Uplink> {
    let time = times.iter().flatten().find_map(|time| time.as_str()?.parse().ok());
    Ok(Uplink { payload: base64(payload)?, port: self::port(port)?, time })
}

/// A payload in Base64, or as a `Buffer` of Node.js; none if it is left out.
fn base64(payload: Option<&Value>) -> anyhow::Result<Vec<u8>> {
    match payload {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(payload)) => STANDARD.decode(payload).map_err(|_| anyhow!("its payload is not Base64")),
        Some(Value::Object(payload)) => envelope::buffer(payload).context("its payload is not Base64"),
        Some(_) => bail!("its payload is not Base64"),
    }
}

/// Networks leave out what is zero.
fn port(port: Option<&Value>) -> anyhow::Result<u8> {
    let port = port.filter(|port| !port.is_null()).map_or(Some(0), Value::as_u64);
    port.and_then(|port| u8::try_from(port).ok()).context("its port is not a number from 0 to 255")
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
            assert_eq!(parse(text).unwrap(), Uplink { payload: vec![1, 2], port, time: expected }, "{text}");
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
            assert_eq!(parse(text).unwrap(), Uplink { payload: Vec::new(), port, time: None }, "{text}");
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
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
