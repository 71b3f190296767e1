//! The two forms of ChirpStack's events: JSON over MQTT, protocol buffers in the Redis stream.
//!
//! An uplink, the most frequent event, is read no further than it must be, and gets its object without being converted
//! to the other form and back.

use api::chirpstack_events::integration::{
    AckEvent, DeviceInfo, IntegrationEvent, JoinEvent, LocationEvent, LogEvent, StatusEvent, TxAckEvent, UplinkEvent,
};
use bridge::{message::raw_object::RawObject, publish::output::EntryField};
use bytes::Bytes;
use pbjson_types::{Struct, Timestamp};
use prost::{
    DecodeError, Message,
    encoding::{DecodeContext, decode_key, skip_field},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{object::to_struct, topic::Topic};

/// The name of uplinks in a stream.
pub(crate) const UP: &str = "up";
/// The number of the member `object` of an uplink.
const OBJECT: u32 = 11;
/// An object without members, as JSON has it. Nothing else in an uplink can look like that: other members of this name
/// are strings.
const EMPTY_OBJECT: &[u8] = br#""object":{}"#;

/// About how many times longer JSON is than a protocol buffer.
const JSON_LENGTH: usize = 4;

/// Reasons why an entry cannot be published.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("it is JSON: only ChirpStack 4 may write to this stream, and it writes protobuf")]
    Json,
    #[error("it is not the protobuf of ChirpStack 4: {0}")]
    NotProtobuf(#[from] DecodeError),
    #[error("it names no application and device")]
    NoDevice,
    #[error("the type of event is not known: a newer Airlock may know it")]
    UnknownType,
    #[error("it has no JSON: {0}")]
    NoJson(#[from] serde_json::Error),
}

/// The fields of an uplink that the bridge needs.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct UplinkHead {
    #[prost(string, tag = "1")]
    pub(crate) deduplication_id: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) time: Option<Timestamp>,
    #[prost(message, optional, tag = "3")]
    pub(crate) device_info: Option<DeviceHead>,
    #[prost(uint32, tag = "8")]
    pub(crate) f_port: u32,
    #[prost(bytes = "vec", tag = "10")]
    pub(crate) data: Vec<u8>,
    #[prost(message, optional, tag = "15")]
    pub(crate) join_server_context: Option<()>,
}

/// The fields of an uplink's device that the bridge needs.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeviceHead {
    #[prost(string, tag = "3")]
    application_id: String,
    #[prost(string, tag = "5")]
    pub(crate) device_profile_id: String,
    #[prost(string, tag = "8")]
    pub(crate) dev_eui: String,
}

/// A time in protocol buffers.
pub(crate) fn timestamp(time: Timestamp) -> types::Timestamp {
    let nanos = time.seconds.saturating_mul(1_000_000_000).saturating_add(time.nanos.into());
    types::Timestamp::from_nanos(nanos)
}

/// The topic of an event.
pub(crate) fn topic(name: &str, value: &[u8]) -> Result<String, Malformed> {
    let form = form(name).ok_or(Malformed::UnknownType)?;
    if value.starts_with(b"{") {
        return Err(Malformed::Json);
    }
    let (application_id, dev_eui) = (form.device)(value)?.ok_or(Malformed::NoDevice)?;
    let is_level = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !is_level(&application_id) || !is_level(&dev_eui) {
        return Err(Malformed::NoDevice);
    }
    let rest = format!("event/{name}");
    Ok(Topic { application_id: &application_id, dev_eui: &dev_eui, rest: &rest }.to_string())
}

/// The JSON of an event.
pub(crate) fn to_json(name: &str, value: &[u8]) -> Result<Vec<u8>, Malformed> {
    (form(name).ok_or(Malformed::UnknownType)?.json)(value)
}

/// The entry of a stream like ChirpStack's, from the topic and the JSON of an event.
pub(crate) fn to_entry(topic: &str, payload: &[u8]) -> Result<EntryField, String> {
    let name = Topic::parse(topic, "").and_then(|topic| topic.event()).ok_or("it is no event")?;
    let form = form(name).ok_or_else(|| Malformed::UnknownType.to_string())?;
    let value = (form.protobuf)(payload).map_err(|error| format!("it is not the JSON of ChirpStack 4: {error}"))?;
    Ok(entry(name.to_owned(), value.into()))
}

/// An entry of a stream like ChirpStack's.
pub(crate) fn entry(name: String, value: Bytes) -> EntryField {
    EntryField { name, value, to_json: |name, value| to_json(name, value).map_err(|error| error.to_string()) }
}

/// An uplink with this object, or without one, as a protocol buffer.
pub(crate) fn with_object(uplink: &[u8], object: Option<&RawValue>) -> Result<Vec<u8>, Malformed> {
    let mut out = Vec::with_capacity(uplink.len() + object.map_or(0, |object| 2 * object.get().len()));
    let mut rest = uplink;
    while !rest.is_empty() {
        let field = rest;
        let (tag, wire_type) = decode_key(&mut rest)?;
        skip_field(wire_type, tag, &mut rest, DecodeContext::default())?;
        if tag != OBJECT {
            out.extend_from_slice(&field[..field.len() - rest.len()]);
        }
    }
    let object = object.map(to_struct).transpose()?;
    // What follows is added to what precedes it.
    out.append(&mut UplinkEvent { object, ..UplinkEvent::default() }.encode_to_vec());
    Ok(out)
}

/// An uplink with this object, or without one, as JSON. The object stays as it is, to the digit.
pub(crate) fn json_with_object(uplink: &[u8], object: Option<&RawValue>) -> Result<Vec<u8>, Malformed> {
    let bytes = uplink.len();
    let mut uplink = UplinkEvent::decode(uplink)?;
    uplink.object = object.map(|_| Struct::default());
    let mut json = Vec::with_capacity(JSON_LENGTH * bytes + object.map_or(0, |object| object.get().len()));
    serde_json::to_writer(&mut json, &uplink)?;
    let place = json.windows(EMPTY_OBJECT.len()).position(|bytes| bytes == EMPTY_OBJECT);
    if let (Some(object), Some(place)) = (object, place) {
        let end = place + EMPTY_OBJECT.len();
        json.splice(end - 2..end, object.get().bytes());
    }
    Ok(json)
}

/// Returns the device of an uplink as JSON; `None` if the uplink cannot be read or has none.
pub(crate) fn device_info(uplink: &[u8]) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(&UplinkEvent::decode(uplink).ok()?.device_info?).ok()
}

/// An application and a device.
type Device = Option<(String, String)>;

/// Functions for a type of event.
struct Form {
    device: fn(&[u8]) -> Result<Device, DecodeError>,
    json: fn(&[u8]) -> Result<Vec<u8>, Malformed>,
    protobuf: fn(&[u8]) -> serde_json::Result<Vec<u8>>,
}

fn form(name: &str) -> Option<Form> {
    Some(match name {
        UP => Form { device: device::<UplinkHead>, ..Form::with_object::<UplinkEvent>() },
        "join" => Form::of::<JoinEvent>(),
        "ack" => Form::of::<AckEvent>(),
        "txack" => Form::of::<TxAckEvent>(),
        "log" => Form::of::<LogEvent>(),
        "status" => Form::of::<StatusEvent>(),
        "location" => Form::of::<LocationEvent>(),
        "integration" => Form::with_object::<IntegrationEvent>(),
        _ => return None,
    })
}

impl Form {
    fn of<E: Event + Serialize + DeserializeOwned>() -> Self {
        Self { device: device::<E>, json: json::<E>, protobuf: protobuf::<E> }
    }

    fn with_object<E: ObjectEvent + Serialize + DeserializeOwned>() -> Self {
        Self { protobuf: object_protobuf::<E>, ..Self::of::<E>() }
    }
}

fn device<E: Event>(value: &[u8]) -> Result<Device, DecodeError> {
    E::decode(value).map(Event::device)
}

fn json<E: Event + Serialize>(value: &[u8]) -> Result<Vec<u8>, Malformed> {
    Ok(serde_json::to_vec(&E::decode(value)?)?)
}

fn protobuf<E: Event + DeserializeOwned>(json: &[u8]) -> serde_json::Result<Vec<u8>> {
    serde_json::from_slice::<E>(json).map(|event| event.encode_to_vec())
}

/// The object is read apart from the rest.
fn object_protobuf<E: ObjectEvent + DeserializeOwned>(json: &[u8]) -> serde_json::Result<Vec<u8>> {
    let mut members = RawObject::parse(json)?;
    let object = members.raw("object").filter(|object| object.get() != "null").map(to_struct).transpose()?;
    members.remove("object");
    let mut event: E = serde_json::from_slice(&serde_json::to_vec(&members)?)?;
    event.set_object(object);
    Ok(event.encode_to_vec())
}

trait Event: Message + Default {
    fn device(self) -> Device;
}

/// An event that carries decoded fields.
trait ObjectEvent: Event {
    fn set_object(&mut self, object: Option<Struct>);
}

impl ObjectEvent for UplinkEvent {
    fn set_object(&mut self, object: Option<Struct>) {
        self.object = object;
    }
}

impl ObjectEvent for IntegrationEvent {
    fn set_object(&mut self, object: Option<Struct>) {
        self.object = object;
    }
}

impl Event for UplinkHead {
    fn device(self) -> Device {
        self.device_info.map(|DeviceHead { application_id, dev_eui, .. }| (application_id, dev_eui))
    }
}

macro_rules! events {
    ($($event:ident)*) => {$(
        impl Event for $event {
            fn device(self) -> Device {
                self.device_info.map(|DeviceInfo { application_id, dev_eui, .. }| (application_id, dev_eui))
            }
        }
    )*};
}

events! { UplinkEvent JoinEvent AckEvent TxAckEvent LogEvent StatusEvent LocationEvent IntegrationEvent }

#[cfg(test)]
mod tests {
    use api::chirpstack_events::gw;
    use serde_json::json;

    use super::*;

    fn device_info() -> Option<DeviceInfo> {
        let (application_id, dev_eui) = ("a-1".to_owned(), "a300000000000000".to_owned());
        let tags = [("object".to_owned(), r#""object":{}"#.to_owned())].into();
        Some(DeviceInfo { application_id, dev_eui, tags, ..DeviceInfo::default() })
    }

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    /// The topic and the JSON of an event.
    fn convert(name: &str, value: &[u8]) -> Result<(String, Vec<u8>), Malformed> {
        Ok((topic(name, value)?, to_json(name, value)?))
    }

    /// As ChirpStack was recorded to write it over MQTT: what is zero is there, but not in what gateways say.
    #[test]
    fn an_event_has_the_json_of_chirpstack() {
        let rx_info = gw::UplinkRxInfo { gateway_id: "0102030405060708".to_owned(), snr: 7.5, ..Default::default() };
        let time = Some(Timestamp { seconds: 1_795_365_955, nanos: 231_022_372 });
        let data = vec![1, 2, 3];
        let event =
            UplinkEvent { time, device_info: device_info(), data, rx_info: vec![rx_info], ..Default::default() };
        let (topic, json) = convert(UP, &event.encode_to_vec()).unwrap();
        assert_eq!(topic, "application/a-1/device/a300000000000000/event/up");
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(json["time"], "2026-11-22T16:45:55.231022372+00:00");
        assert_eq!((&json["adr"], &json["fCnt"], &json["data"]), (&false.into(), &0.into(), &"AQID".into()));
        assert_eq!(json["rxInfo"], json!([{"gatewayId": "0102030405060708", "snr": 7.5}]));
        assert_eq!(json["deviceInfo"]["deviceClassEnabled"], "CLASS_A");
        assert_eq!(json.get("object"), None);
    }

    #[test]
    fn an_entry_has_what_the_json_has() {
        let fields = [("celsius".to_owned(), 21.5.into())].into();
        let event =
            UplinkEvent { device_info: device_info(), f_cnt: 7, object: Some(Struct { fields }), ..Default::default() };
        let (topic, json) = convert(UP, &event.encode_to_vec()).unwrap();
        let to_entry = |json: &[u8]| to_entry(&topic, json).map(|entry| (entry.name, entry.value.to_vec()));
        assert_eq!(to_entry(&json), Ok((UP.to_owned(), event.encode_to_vec())));
        let newer = String::from_utf8(json).unwrap().replacen('{', r#"{"newMember":1,"#, 1);
        assert_eq!(to_entry(newer.as_bytes()).unwrap().1, event.encode_to_vec());
        assert!(to_entry(b"text").unwrap_err().contains("not the JSON"));
        assert!(super::to_entry("application/a/device/b/command/down", b"{}").is_err());
    }

    #[test]
    fn an_object_takes_the_place_of_another() {
        let old = Some(Struct { fields: [("old".to_owned(), 1.0.into())].into() });
        let fields = [("celsius".to_owned(), 21.5.into())].into();
        let uplink = |object| UplinkEvent { device_info: device_info(), f_cnt: 7, object, ..Default::default() };
        let (old, new, none) = (uplink(old), uplink(Some(Struct { fields })), uplink(None));
        for before in [&old, &none] {
            let value = before.encode_to_vec();
            for (object, after) in [(Some(raw(r#"{"celsius":21.5}"#)), &new), (None, &none)] {
                let changed = with_object(&value, object.as_deref()).unwrap();
                assert_eq!(&UplinkEvent::decode(changed.as_slice()).unwrap(), after);
                let json = json_with_object(&value, object.as_deref()).unwrap();
                assert_eq!(json, to_json(UP, &after.encode_to_vec()).unwrap());
            }
        }
        let json = json_with_object(&none.encode_to_vec(), Some(&raw(r#"{"b":1.0,"a":{}}"#))).unwrap();
        assert!(String::from_utf8(json).unwrap().contains(r#""data":"","object":{"b":1.0,"a":{}},"#));
    }

    #[test]
    fn what_is_not_known_of_an_uplink_stays() {
        let value = [UplinkEvent { f_cnt: 7, ..Default::default() }.encode_to_vec(), vec![0xf8, 0x01, 5]].concat();
        assert_eq!(with_object(&value, None).unwrap(), value);
        assert!(matches!(with_object(&value[..value.len() - 1], None), Err(Malformed::NotProtobuf(_))));
    }

    #[test]
    fn events_of_other_integrations_pass() {
        let fields = [("celsius".to_owned(), 21.5.into())].into();
        let event = IntegrationEvent {
            device_info: device_info(),
            integration_name: "loracloud".to_owned(),
            object: Some(Struct { fields }),
            ..Default::default()
        };
        let (topic, json) = convert("integration", &event.encode_to_vec()).unwrap();
        assert_eq!(topic, "application/a-1/device/a300000000000000/event/integration");
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!((&json["integrationName"], &json["object"]["celsius"]), (&"loracloud".into(), &21.5.into()));
    }

    #[test]
    fn what_names_no_topic_is_malformed() {
        let hostile = DeviceInfo { application_id: "a/+".to_owned(), ..device_info().unwrap() };
        let hostile = JoinEvent { device_info: Some(hostile), ..Default::default() }.encode_to_vec();
        let join = JoinEvent { device_info: device_info(), ..Default::default() }.encode_to_vec();
        assert!(matches!(topic(UP, br#"{"deviceInfo":{}}"#), Err(Malformed::Json)));
        assert!(matches!(topic(UP, b"\xff\xff"), Err(Malformed::NotProtobuf(_))));
        assert!(matches!(topic(UP, b""), Err(Malformed::NoDevice)));
        assert!(matches!(topic("join", &hostile), Err(Malformed::NoDevice)));
        assert!(matches!(topic("unheard-of", &join), Err(Malformed::UnknownType)));
        assert!(topic("join", &join).is_ok());
    }

    #[test]
    fn numbers_of_any_size_fit_into_both_forms() {
        let topic = "application/119e3472-d36a-4260-a167-b51f0bd25676/device/a300000000000001/event/up";
        let json = r#"{"deviceInfo":{"devEui":"a300000000000001"},"fCnt":7,"object":{"at":1795366259000,"n":-1}}"#;
        let entry = to_entry(topic, json.as_bytes()).unwrap();
        let uplink = UplinkEvent::decode(entry.value.clone()).unwrap();
        let replaced = with_object(&entry.value, Some(&raw(r#"{"at":1795366259000,"n":-1}"#))).unwrap();
        assert_eq!(UplinkEvent::decode(&*replaced).unwrap(), uplink);
        let object = serde_json::to_value(uplink.object.unwrap()).unwrap();
        assert_eq!((uplink.f_cnt, &object), (7, &json!({"at": 1_795_366_259_000.0, "n": -1.0})));
        let entry = to_entry(&topic.replace("/up", "/integration"), json.as_bytes()).unwrap();
        let event = IntegrationEvent::decode(entry.value).unwrap();
        assert_eq!(serde_json::to_value(event.object.unwrap()).unwrap(), object);
    }
}
