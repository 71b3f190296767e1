//! The events of ChirpStack's Redis stream: protocol buffers there, JSON over MQTT.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use api::chirpstack_events::integration::{
    AckEvent, DeviceInfo, IntegrationEvent, JoinEvent, LocationEvent, LogEvent, StatusEvent, TxAckEvent, UplinkEvent,
};
use futures::future::BoxFuture;
use prost::Message;
use serde::{Serialize, de::DeserializeOwned};

use super::topic::Topic;
use crate::{delivery::Delivery, lanes::Lanes, metrics, redis::StreamEntry};

/// The stream of all devices, behind ChirpStack's `key_prefix`.
pub(super) const KEY: &str = "device:stream:event";

/// Maximum number of names of dropped entries that are logged.
const NAMES_MAX: usize = 100;

/// Why an entry cannot be published: nothing says where.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Malformed {
    #[error("it is JSON: only ChirpStack 4 may write to this stream, and it writes protobuf")]
    Json,
    #[error("it is not the protobuf of ChirpStack 4: {0}")]
    NotProtobuf(prost::DecodeError),
    #[error("it names no application and device")]
    NoDevice,
    #[error("the type of event is not known: a newer Airlock may know it")]
    UnknownType,
    #[error("it has no JSON: {0}")]
    NoJson(String),
}

/// Works on the entries of one device one after the other.
pub(super) fn lanes(
    work: impl Fn(Delivery) -> BoxFuture<'static, ()> + Send + Sync + 'static,
) -> impl Fn(StreamEntry) + Send + Sync + 'static {
    let (lanes, named) = (Lanes::new(Arc::new(work)), Named::default());
    move |StreamEntry { name, value, ack }| match convert(&name, &value) {
        Ok((topic, payload)) => {
            let device = Topic::parse(&topic, "").map_or_else(String::new, |topic| topic.dev_eui.to_owned());
            lanes.add(&device, Delivery { topic, payload: payload.into(), is_repeated: false, ack });
        }
        Err(error) => {
            if named.is_first(&name) {
                tracing::warn!(name, bytes = value.len(), %error, "dropped an entry of the Redis stream");
            }
            if name == "up" {
                metrics::uplink("malformed");
            } else {
                metrics::event("malformed");
            }
            tokio::spawn(ack.acknowledge());
        }
    }
}

/// The names of entries that were dropped: what something else writes again and again is logged once.
#[derive(Default)]
struct Named(Mutex<BTreeSet<String>>);

impl Named {
    /// Whether `name` is a new one; further ones than fit count as old.
    fn is_first(&self, name: &str) -> bool {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.len() < NAMES_MAX && names.insert(name.to_owned())
    }
}

/// The topic and the JSON of an event.
fn convert(name: &str, value: &[u8]) -> Result<(String, Vec<u8>), Malformed> {
    (forms(name).ok_or(Malformed::UnknownType)?.json)(name, value)
}

/// The entry of a stream like ChirpStack's: the name of an event and its protocol buffer, from its topic and JSON.
pub(super) fn to_entry(topic: &str, payload: &[u8]) -> Result<(String, Vec<u8>), String> {
    let name = Topic::parse(topic, "").and_then(|topic| topic.event()).ok_or("it is no event")?;
    let form = forms(name).ok_or_else(|| Malformed::UnknownType.to_string())?;
    let value = (form.protobuf)(payload).map_err(|error| format!("it is not the JSON of ChirpStack 4: {error}"))?;
    Ok((name.to_owned(), value))
}

/// A topic and JSON.
type Converted = Result<(String, Vec<u8>), Malformed>;

/// The two forms of a type of event.
struct Forms {
    json: fn(&str, &[u8]) -> Converted,
    protobuf: fn(&[u8]) -> serde_json::Result<Vec<u8>>,
}

fn forms(name: &str) -> Option<Forms> {
    Some(match name {
        "up" => Forms::of::<UplinkEvent>(),
        "join" => Forms::of::<JoinEvent>(),
        "ack" => Forms::of::<AckEvent>(),
        "txack" => Forms::of::<TxAckEvent>(),
        "log" => Forms::of::<LogEvent>(),
        "status" => Forms::of::<StatusEvent>(),
        "location" => Forms::of::<LocationEvent>(),
        "integration" => Forms::of::<IntegrationEvent>(),
        _ => return None,
    })
}

impl Forms {
    fn of<E: Event>() -> Self {
        Self { json: json::<E>, protobuf: protobuf::<E> }
    }
}

fn protobuf<E: Event>(json: &[u8]) -> serde_json::Result<Vec<u8>> {
    serde_json::from_slice::<E>(json).map(|event| event.encode_to_vec())
}

fn json<E: Event>(name: &str, value: &[u8]) -> Result<(String, Vec<u8>), Malformed> {
    if value.starts_with(b"{") {
        return Err(Malformed::Json);
    }
    let event = E::decode(value).map_err(Malformed::NotProtobuf)?;
    let is_level = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let device = event.device().filter(|device| is_level(&device.application_id) && is_level(&device.dev_eui));
    let DeviceInfo { application_id, dev_eui, .. } = device.ok_or(Malformed::NoDevice)?;
    let topic = Topic { application_id, dev_eui, rest: &format!("event/{name}") }.to_string();
    let json = serde_json::to_vec(&event).map_err(|error| Malformed::NoJson(error.to_string()))?;
    Ok((topic, json))
}

trait Event: Message + Default + Serialize + DeserializeOwned {
    fn device(&self) -> Option<&DeviceInfo>;
}

macro_rules! events {
    ($($event:ident)*) => {$(
        impl Event for $event {
            fn device(&self) -> Option<&DeviceInfo> {
                self.device_info.as_ref()
            }
        }
    )*};
}

events! { UplinkEvent JoinEvent AckEvent TxAckEvent LogEvent StatusEvent LocationEvent IntegrationEvent }

#[cfg(test)]
mod tests {
    use api::chirpstack_events::gw;

    use super::*;

    fn device_info() -> Option<DeviceInfo> {
        let (application_id, dev_eui) = ("a-1".to_owned(), "a300000000000000".to_owned());
        Some(DeviceInfo { application_id, dev_eui, ..DeviceInfo::default() })
    }

    /// As ChirpStack was recorded to write it over MQTT: what is zero is there, but not in what gateways say.
    #[test]
    fn an_event_has_the_json_of_chirpstack() {
        let rx_info = gw::UplinkRxInfo { gateway_id: "0102030405060708".to_owned(), snr: 7.5, ..Default::default() };
        let time = Some(pbjson_types::Timestamp { seconds: 1_795_365_955, nanos: 231_022_372 });
        let data = vec![1, 2, 3];
        let event =
            UplinkEvent { time, device_info: device_info(), data, rx_info: vec![rx_info], ..Default::default() };
        let (topic, json) = convert("up", &event.encode_to_vec()).unwrap();
        assert_eq!(topic, "application/a-1/device/a300000000000000/event/up");
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(json["time"], "2026-11-22T16:45:55.231022372+00:00");
        assert_eq!((&json["adr"], &json["fCnt"], &json["data"]), (&false.into(), &0.into(), &"AQID".into()));
        assert_eq!(json["rxInfo"], serde_json::json!([{"gatewayId": "0102030405060708", "snr": 7.5}]));
        assert_eq!(json["deviceInfo"]["deviceClassEnabled"], "CLASS_A");
        assert_eq!(json.get("object"), None);
    }

    #[test]
    fn an_entry_has_what_the_json_has() {
        let fields = [("celsius".to_owned(), 21.5.into())].into();
        let object = Some(pbjson_types::Struct { fields });
        let event = UplinkEvent { device_info: device_info(), f_cnt: 7, object, ..Default::default() };
        let (topic, json) = convert("up", &event.encode_to_vec()).unwrap();
        assert_eq!(to_entry(&topic, &json), Ok(("up".to_owned(), event.encode_to_vec())));
        let newer = String::from_utf8(json).unwrap().replacen('{', r#"{"newMember":1,"#, 1);
        assert_eq!(to_entry(&topic, newer.as_bytes()).unwrap().1, event.encode_to_vec());
        assert!(to_entry(&topic, b"text").unwrap_err().contains("not the JSON"));
        assert!(to_entry("application/a/device/b/command/down", b"{}").is_err());
    }

    #[test]
    fn events_of_other_integrations_pass() {
        let fields = [("celsius".to_owned(), 21.5.into())].into();
        let event = IntegrationEvent {
            device_info: device_info(),
            integration_name: "loracloud".to_owned(),
            object: Some(pbjson_types::Struct { fields }),
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
        assert_eq!(convert("up", br#"{"deviceInfo":{}}"#), Err(Malformed::Json));
        assert!(matches!(convert("up", b"\xff\xff"), Err(Malformed::NotProtobuf(_))));
        assert_eq!(convert("up", b""), Err(Malformed::NoDevice));
        assert_eq!(convert("join", &hostile), Err(Malformed::NoDevice));
        assert_eq!(convert("unheard-of", &join), Err(Malformed::UnknownType));
        assert!(convert("join", &join).is_ok());
    }
}
