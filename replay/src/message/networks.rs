//! The uplinks of each network, by the members that only its messages have.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::value::RawValue;
use types::{HexBytes, Timestamp};

use super::{
    MessageError, envelope,
    object::{Object, text},
};
use crate::{
    RecordedUplink,
    own::{Column, Own},
    stored::Name,
};

type MessageResult = Result<Option<RecordedUplink>, MessageError>;

/// The uplink in an object of any network.
pub(super) fn find(message: &Object<'_>) -> MessageResult {
    let networks = [things_stack, things_network_2, loriot, own, chirpstack];
    networks.into_iter().find_map(|network| network(message).transpose()).transpose()
}

/// `{"uplink_message": {"frm_payload": "AQ==", "f_port": 1}}`, also as the `data` of an event. The network leaves an
/// empty payload out.
fn things_stack(message: &Object<'_>) -> MessageResult {
    let (uplink, event) = match message.object("uplink_message") {
        Some(uplink) => (uplink, None),
        None => {
            let Some(event) = message.object("data") else { return Ok(None) };
            let Some(uplink) = event.object("uplink_message") else { return Ok(None) };
            (uplink, Some(event))
        }
    };
    let around = event.as_ref().unwrap_or(message);
    let ids = around.object("end_device_ids");
    let id = |name: &str| ids.as_ref().and_then(|ids| ids.string(name));
    let application = ids.as_ref().and_then(|ids| ids.object("application_ids"));
    let times = [uplink.text("received_at"), around.text("received_at"), message.text("time")];
    Ok(Some(RecordedUplink {
        application: Name::new(application.and_then(|ids| ids.string("application_id")), None),
        device: Name::new(id("device_id"), id("dev_eui")),
        payload: base64(uplink.get("frm_payload"))?,
        port: port(uplink.get("f_port"))?,
        time: first_time(&times),
        object: uplink.get("decoded_payload").map(ToOwned::to_owned),
        ..RecordedUplink::default()
    }))
}

/// `{"payload_raw": "AQ==", "port": 1, "metadata": {"time": …}}`.
fn things_network_2(message: &Object<'_>) -> MessageResult {
    let Some(payload) = message.member("payload_raw") else { return Ok(None) };
    let metadata = message.object("metadata");
    Ok(Some(RecordedUplink {
        application: Name::new(message.string("app_id"), None),
        device: Name::new(message.string("dev_id"), message.string("hardware_serial")),
        payload: base64(Some(payload))?,
        port: port(message.get("port"))?,
        time: first_time(&[metadata.and_then(|metadata| metadata.text("time"))]),
        object: message.get("payload_fields").map(ToOwned::to_owned),
        ..RecordedUplink::default()
    }))
}

/// `{"cmd": "rx", "EUI": "0102030405060708", "port": 1, "data": "01", "ts": 1700000000000}`, in hexadecimal.
fn loriot(message: &Object<'_>) -> MessageResult {
    let [Some(command), Some(_), Some(data)] = ["cmd", "EUI", "data"].map(|name| message.member(name)) else {
        return Ok(None);
    };
    if !matches!(text(command).as_deref(), Some("rx" | "gw")) {
        let reason = format!("its `cmd` is {command}, not \"rx\" or \"gw\" as LORIOT's are");
        return Err(MessageError::new(reason));
    }
    let payload = text(data).and_then(|data| data.parse().ok()).map(|HexBytes(bytes)| bytes);
    let payload = payload.ok_or(MessageError::new("its `data` is not hexadecimal, as LORIOT's is"))?;
    let time = message.get("ts").and_then(|time| time.get().parse().ok()).map(Timestamp::from_millis);
    let device = Name::new(message.string("EUI"), None);
    Ok(Some(RecordedUplink { device, payload, port: port(message.get("port"))?, time, ..RecordedUplink::default() }))
}

/// `{"app_id": …, "dev_id": …, "kind": "up", "port": 1, "payload": "AQ==", "outcome": "decoded", "result": {…}}`, as
/// `airlock history export` writes it.
fn own(message: &Object<'_>) -> MessageResult {
    let (Some(_), Some("up"), Some(outcome)) =
        (message.get("dev_id"), message.text("kind").as_deref(), message.text("outcome"))
    else {
        return Ok(None);
    };
    let uplink = RecordedUplink {
        id: message.string("id").unwrap_or_default(),
        application: Name::new(message.string("app_id"), None),
        device: Name::new(message.string("dev_id"), None),
        payload: base64(message.get("payload"))?,
        port: port(message.get("port"))?,
        time: first_time(&[message.text("received")]),
        object: message.get("result").filter(|_| outcome == "decoded").map(ToOwned::to_owned),
        ..RecordedUplink::default()
    };
    // Numbers of 64 bits are texts there.
    let cell = |column: Column| {
        let value = message.get(column.name());
        Ok(value.map(|value| text(value).unwrap_or(Cow::Borrowed(value.get()))))
    };
    Ok(Some(Own::read(cell).map_err(MessageError::new)?.complete(uplink)))
}

/// Members that only ChirpStack's uplinks have, in versions 4 and 3. People write `fPort` beside hexadecimal, too.
const OF_CHIRPSTACK: [&str; 4] = ["fCnt", "rxInfo", "deviceInfo", "devEUI"];

/// `{"deviceInfo": …, "data": "AQ==", "fPort": 1}`. The network leaves an empty payload out, or writes it as null.
fn chirpstack(message: &Object<'_>) -> MessageResult {
    let has = |name: &str| message.get(name).is_some();
    let data = message.get("data");
    match data.map(text) {
        // Other events have the same device, but no frame.
        None if !(has("deviceInfo") || has("devEUI")) || !(has("rxInfo") || has("fPort")) => return Ok(None),
        Some(Some(data)) if !OF_CHIRPSTACK.into_iter().any(has) => refuse_ambiguous(&data, has("port"))?,
        Some(Some(_)) | None => {}
        Some(None) => return Ok(None),
    }
    Ok(Some(RecordedUplink {
        id: message.string("deduplicationId").unwrap_or_default(),
        payload: base64(data)?,
        port: port(message.get("fPort"))?,
        time: first_time(&[message.text("time"), message.text("publishedAt")]),
        ..of_chirpstack(message)
    }))
}

fn refuse_ambiguous(data: &str, has_port: bool) -> Result<(), MessageError> {
    if has_port {
        let reason = "it has `data` and `port`, which is no message of ChirpStack: use --base64 or --hex";
        return Err(MessageError::new(reason));
    }
    match data.parse::<HexBytes>().is_ok() && !data.is_empty() {
        true => Err(MessageError::new("its `data` may be Base64 or hexadecimal: use --base64 or --hex")),
        false => Ok(()),
    }
}

/// Names and object, which versions 4 and 3 write in different places.
fn of_chirpstack(message: &Object<'_>) -> RecordedUplink {
    let object = match message.text("objectJSON") {
        Some(json) => RawValue::from_string(json.into_owned()).ok(),
        None => message.get("object").map(ToOwned::to_owned),
    };
    let named = match message.object("deviceInfo") {
        Some(info) => RecordedUplink {
            application: Name::new(info.string("applicationId"), info.string("applicationName")),
            device: Name::new(info.string("devEui"), info.string("deviceName")),
            profile: Name::new(info.string("deviceProfileId"), info.string("deviceProfileName")),
            ..RecordedUplink::default()
        },
        None => RecordedUplink {
            application: Name::new(message.string("applicationID"), message.string("applicationName")),
            device: Name::new(message.text("devEUI").map(eui), message.string("deviceName")),
            profile: Name::new(message.string("deviceProfileID"), message.string("deviceProfileName")),
            ..RecordedUplink::default()
        },
    };
    RecordedUplink { object, ..named }
}

/// An EUI in hexadecimal. Version 3 writes it in Base64, too.
fn eui(text: Cow<'_, str>) -> String {
    match STANDARD.decode(text.as_bytes()) {
        Ok(bytes) if bytes.len() == 8 => hex::encode(bytes),
        _ => text.into_owned(),
    }
}

fn first_time(times: &[Option<Cow<'_, str>>]) -> Option<Timestamp> {
    times.iter().flatten().find_map(|time| time.parse().ok())
}

/// A payload in Base64, or as a `Buffer` of Node.js; none if it is left out.
fn base64(payload: Option<&RawValue>) -> Result<Vec<u8>, MessageError> {
    let Some(payload) = payload.filter(|payload| payload.get() != "null") else { return Ok(Vec::new()) };
    let bytes = match text(payload) {
        Some(text) => STANDARD.decode(text.as_bytes()).ok(),
        None => envelope::buffer(payload),
    };
    bytes.ok_or(MessageError::new("its payload is not Base64"))
}

/// Networks leave out what is zero.
fn port(port: Option<&RawValue>) -> Result<u8, MessageError> {
    let port = port.map_or(Ok(0), |port| port.get().parse());
    port.map_err(|_| MessageError::new("its port is not a number from 0 to 255"))
}
