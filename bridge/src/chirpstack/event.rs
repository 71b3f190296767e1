//! The `up` event: what its codec needs, and the same event with an object.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::value::RawValue;
use types::Timestamp;

use crate::members::Members;

/// An `up` event of ChirpStack.
pub(super) struct UplinkEvent<'a> {
    members: Members<'a>,
    pub(super) device: DeviceInfo,
    /// Equal in copies of the same event.
    pub(super) deduplication_id: Option<String>,
    pub(super) time: Option<Timestamp>,
    pub(super) port: u8,
    pub(super) data: Vec<u8>,
}

/// What the bridge needs of `deviceInfo`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeviceInfo {
    pub(super) device_profile_id: String,
    pub(super) dev_eui: String,
}

/// Why an event cannot be decoded. It is published as it is.
#[derive(Debug, thiserror::Error)]
pub(super) enum Malformed {
    #[error("it is not JSON: set `json=true` in ChirpStack's [integration.mqtt]")]
    NotJson,
    #[error("`{0}` is missing or malformed")]
    Member(&'static str),
}

impl<'a> UplinkEvent<'a> {
    pub(super) fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let members = Members::parse(payload).map_err(|_| Malformed::NotJson)?;
        let device: DeviceInfo = members.get("deviceInfo").unwrap_or_default();
        if device.device_profile_id.is_empty() || device.dev_eui.is_empty() {
            return Err(Malformed::Member("deviceInfo"));
        }
        // A proto3 writer may leave out what is zero or empty.
        let data: String = member(&members, "data")?;
        let port: u8 = member(&members, "fPort")?;
        Ok(Self {
            device,
            deduplication_id: members.get("deduplicationId").filter(|id: &String| !id.is_empty()),
            time: members.get("time"),
            port,
            data: STANDARD.decode(data).map_err(|_| Malformed::Member("data"))?,
            members,
        })
    }

    /// Whether a codec can do something with it: it has a port of the application, and ChirpStack could decrypt it.
    pub(super) fn is_decodable(&self) -> bool {
        self.port > 0 && !self.members.has("joinServerContext")
    }

    /// The object that ChirpStack decoded itself.
    pub(super) fn object(&self) -> Option<&RawValue> {
        self.members.raw("object").filter(|object| object.get() != "null")
    }

    /// `deviceInfo` as it came in.
    pub(super) fn device_info(&self) -> Option<&RawValue> {
        self.members.raw("deviceInfo")
    }

    /// The event with this object, or without one.
    pub(super) fn into_json(mut self, object: Option<Box<RawValue>>) -> serde_json::Result<Vec<u8>> {
        match object {
            Some(object) => self.members.set("object", object, "data"),
            None => self.members.remove("object"),
        }
        serde_json::to_vec(&self.members)
    }
}

fn member<T: serde::de::DeserializeOwned + Default>(members: &Members<'_>, name: &'static str) -> Result<T, Malformed> {
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
        let json = String::from_utf8(event.into_json(Some(object)).unwrap()).unwrap();
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
