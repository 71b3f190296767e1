//! The `up` event: what its codec needs, and the same event with an object.

pub(super) mod forms;
pub(super) mod incoming;
pub(super) mod log_event;
mod object;
pub(super) mod other;
pub(super) mod radio;
mod record;
pub(super) mod topic;

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bridge::{
    message::raw_object::RawObject,
    publish::output::{EntryField, Payload},
};
use prost::Message;
use serde::Deserialize;
use serde_json::value::RawValue;
use types::Timestamp;

use self::forms::{DeviceHead, UplinkHead, device_info, entry, json_with_object, timestamp, with_object};

/// An `up` event of ChirpStack.
pub(super) struct UplinkEvent<'a> {
    form: Form<'a>,
    is_encrypted: bool,
    pub(super) device: DeviceInfo,
    /// Equal in copies of the same event.
    pub(super) deduplication_id: Option<String>,
    pub(super) time: Option<Timestamp>,
    pub(super) port: u8,
    pub(super) data: Vec<u8>,
}

/// An event as it came in.
enum Form<'a> {
    Json(RawObject<'a>),
    Protobuf(&'a EntryField),
}

/// The members of `deviceInfo` that the bridge needs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeviceInfo {
    pub(super) device_profile_id: String,
    pub(super) dev_eui: String,
}

/// Reasons why an event cannot be decoded. It is published as it is.
#[derive(Debug, thiserror::Error)]
pub(super) enum Malformed {
    #[error("it is not JSON: set `json=true` in ChirpStack's [integration.mqtt]")]
    NotJson,
    #[error("`{0}` is missing or malformed")]
    Member(&'static str),
    #[error("it is not the protobuf of ChirpStack 4: {0}")]
    NotProtobuf(#[from] prost::DecodeError),
}

impl<'a> UplinkEvent<'a> {
    pub(super) fn read(payload: &'a Payload) -> Result<Self, Malformed> {
        match payload {
            Payload::Json(json) => Self::parse(json),
            Payload::Entry(entry) => Self::decode(entry),
        }
    }

    fn decode(entry: &'a EntryField) -> Result<Self, Malformed> {
        let head = UplinkHead::decode(&*entry.value)?;
        let DeviceHead { device_profile_id, dev_eui, .. } = head.device_info.unwrap_or_default();
        Self {
            device: DeviceInfo { device_profile_id, dev_eui },
            deduplication_id: Some(head.deduplication_id).filter(|id| !id.is_empty()),
            time: head.time.map(timestamp),
            port: u8::try_from(head.f_port).map_err(|_| Malformed::Member("fPort"))?,
            data: head.data,
            is_encrypted: head.join_server_context.is_some(),
            form: Form::Protobuf(entry),
        }
        .check()
    }

    pub(super) fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let members = RawObject::parse(payload).map_err(|_| Malformed::NotJson)?;
        // A proto3 writer may leave out what is zero or empty.
        let data: String = member(&members, "data")?;
        let port: u8 = member(&members, "fPort")?;
        Self {
            device: members.get("deviceInfo").unwrap_or_default(),
            deduplication_id: members.get("deduplicationId").filter(|id: &String| !id.is_empty()),
            time: members.get("time"),
            port,
            data: STANDARD.decode(data).map_err(|_| Malformed::Member("data"))?,
            is_encrypted: members.has("joinServerContext"),
            form: Form::Json(members),
        }
        .check()
    }

    fn check(self) -> Result<Self, Malformed> {
        let is_known = !self.device.device_profile_id.is_empty() && !self.device.dev_eui.is_empty();
        if is_known { Ok(self) } else { Err(Malformed::Member("deviceInfo")) }
    }

    /// Returns true if a codec can decode it: it has a port of the application, and ChirpStack could decrypt it.
    pub(super) fn is_decodable(&self) -> bool {
        self.port > 0 && !self.is_encrypted
    }

    /// The object that ChirpStack decoded itself; none is read of an entry of a stream.
    pub(super) fn object(&self) -> Option<&RawValue> {
        match &self.form {
            Form::Json(members) => members.raw("object").filter(|object| object.get() != "null"),
            Form::Protobuf(_) => None,
        }
    }

    /// `deviceInfo` as JSON.
    pub(super) fn device_info(&self) -> Option<Cow<'_, RawValue>> {
        match &self.form {
            Form::Json(members) => members.raw("deviceInfo").map(Cow::Borrowed),
            Form::Protobuf(entry) => device_info(&entry.value).map(Cow::Owned),
        }
    }

    /// The event with this object, or without one, as JSON or as the entry of a stream.
    pub(super) fn into_payload(
        self,
        object: Option<Box<RawValue>>,
        is_stream: bool,
    ) -> Result<Payload, forms::Malformed> {
        Ok(match self.form {
            Form::Json(mut members) => {
                match object {
                    Some(object) => members.set("object", object, "data"),
                    None => members.remove("object"),
                }
                serde_json::to_vec(&members)?.into()
            }
            Form::Protobuf(EntryField { name, value, .. }) if is_stream => {
                let value = with_object(value, object.as_deref())?;
                Payload::Entry(entry(name.clone(), value.into()))
            }
            Form::Protobuf(EntryField { value, .. }) => json_with_object(value, object.as_deref())?.into(),
        })
    }
}

fn member<T: serde::de::DeserializeOwned + Default>(
    members: &RawObject<'_>,
    name: &'static str,
) -> Result<T, Malformed> {
    if members.has(name) { members.get(name).ok_or(Malformed::Member(name)) } else { Ok(T::default()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = r#"{"deduplicationId":"bf75e9d6","time":"2026-11-22T16:45:55.231022372+00:00","deviceInfo":{"deviceProfileId":"p1","devEui":"a300000000000000","tags":{"k":"v"}},"fCnt":0,"fPort":2,"data":"AQID","rxInfo":[{"snr":7.50}],"new":1e0}"#;

    #[test]
    fn reads_what_a_codec_needs_and_keeps_everything_else() {
        let event = UplinkEvent::parse(EVENT.as_bytes()).unwrap();
        assert_eq!((event.port, event.data.as_slice()), (2, &[1, 2, 3][..]));
        assert_eq!(event.time.unwrap().as_nanos(), 1_795_365_955_231_022_372);
        assert!(event.is_decodable());
        let object = RawValue::from_string(r#"{"t":1.0}"#.to_owned()).unwrap();
        let json = String::from_utf8(event.into_payload(Some(object), false).unwrap().bytes().to_vec()).unwrap();
        assert_eq!(json, EVENT.replace(r#""data":"AQID","#, r#""data":"AQID","object":{"t":1.0},"#));
    }

    #[test]
    fn says_what_is_missing() {
        for (text, expected) in [
            ("\u{a}$bf75", "json=true"),
            ("{}", "deviceInfo"),
            (r#"{"deviceInfo":{"deviceProfileId":"p1"}}"#, "deviceInfo"),
            (r#"{"deviceInfo":{"deviceProfileId":"p1","devEui":"1"},"fPort":"x"}"#, "fPort"),
            (r#"{"deviceInfo":{"deviceProfileId":"p1","devEui":"1"},"fPort":300}"#, "fPort"),
            (r#"{"deviceInfo":{"deviceProfileId":"p1","devEui":"1"},"data":"&"}"#, "data"),
        ] {
            let error = UplinkEvent::parse(text.as_bytes()).err().unwrap().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn does_not_decode_what_has_no_port_or_is_encrypted() {
        let event = |members: &str| format!(r#"{{"deviceInfo":{{"deviceProfileId":"p","devEui":"1"}},{members}}}"#);
        for (members, expected) in [
            (r#""fPort":1"#, true),
            (r#""fPort":0"#, false),
            (r#""data":"AQ==""#, false),
            (r#""fPort":1,"joinServerContext":null"#, true),
            (r#""fPort":1,"joinServerContext":{"sessionKeyId":"x"}"#, false),
        ] {
            let text = event(members);
            assert_eq!(UplinkEvent::parse(text.as_bytes()).unwrap().is_decodable(), expected, "{members}");
        }
    }
}
