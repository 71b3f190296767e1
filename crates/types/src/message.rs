//! Messages that applications send and receive, in the exact format of The Things Network v2.

mod event;
mod network;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

pub use self::{
    event::{Activation, DeviceEvent, DownlinkConfig, DownlinkEvent, DownlinkSentEvent, ErrorEvent, SilentEvent},
    network::{
        DeviceIds, DownlinkOutcome, DownlinkReport, NetworkDevice, NetworkDownlink, NetworkEvent, NetworkJoin,
        NetworkRefusal, NetworkUplink,
    },
};
use crate::{AppId, DevEui, DevId};

/// An uplink, as published on `<app_id>/devices/<dev_id>/up`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Uplink {
    /// The application.
    pub app_id: AppId,
    /// The device.
    pub dev_id: DevId,
    /// The device EUI, upper-case hexadecimal.
    #[serde(default, skip_serializing_if = "DevEui::is_zero")]
    pub hardware_serial: DevEui,
    /// The LoRaWAN port.
    pub port: u8,
    /// The frame counter.
    pub counter: u32,
    /// True if the device requested an acknowledgement.
    #[serde(default, skip_serializing_if = "is_false")]
    pub confirmed: bool,
    /// True if the device sent this counter before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_retry: bool,
    /// The payload; base64 in JSON, or null.
    #[serde(with = "base64_or_null")]
    pub payload_raw: Option<Vec<u8>>,
    /// The output of the payload functions: a JSON object, its keys in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_fields: Option<Box<RawValue>>,
    /// The output of `normalizeUplink`, if the decoder's source defines it: an object or an array of objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normalized_payload: Option<Box<RawValue>>,
    /// Metadata of its reception.
    pub metadata: Metadata,
    /// The device's attributes; only if the payload functions ran.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// Number of this correction of an earlier message, from 1 on; 0 for a message that corrects none. Not in v2.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub revision: u32,
    /// The id in history of the message that this one corrects; empty for none. Not in v2.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub corrects: String,
}

/// Metadata of the reception of a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// RFC 3339, UTC; empty if unknown.
    #[serde(default)]
    pub time: String,
    /// In MHz.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub frequency: f32,
    /// `LORA` or `FSK`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub modulation: String,
    /// For LoRa, such as `SF7BW125`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub data_rate: String,
    /// For FSK, in bit/s.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bit_rate: u32,
    /// Time on air in nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub airtime: u64,
    /// Such as `4/5`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub coding_rate: String,
    /// The gateways that received it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<GatewayMetadata>,
    /// The device's latitude in degrees.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub latitude: f32,
    /// The device's longitude in degrees.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub longitude: f32,
    /// The device's altitude in metres.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub altitude: i32,
    /// The source of the location, such as `registry`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub location_source: String,
    /// The version of the payload functions that ran, if it was asked for; 0 for none. Not in v2.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub functions_version: u32,
}

/// Reception of a frame by one gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewayMetadata {
    /// The gateway's id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gtw_id: String,
    /// True if the gateway is authenticated.
    #[serde(default, skip_serializing_if = "is_false")]
    pub gtw_trusted: bool,
    /// The concentrator's counter in microseconds, which wraps around.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub timestamp: u32,
    /// Time at which the antenna received it, in nanoseconds within the second.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fine_timestamp: u64,
    /// The fine timestamp, encrypted; base64 in JSON.
    #[serde(default, with = "base64_or_null", skip_serializing_if = "Option::is_none")]
    pub fine_timestamp_encrypted: Option<Vec<u8>>,
    /// RFC 3339, UTC; empty if unknown.
    #[serde(default)]
    pub time: String,
    /// The antenna; a gateway with several has an entry for each.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub antenna: u32,
    /// The concentrator's channel.
    pub channel: u32,
    /// In dBm.
    pub rssi: f32,
    /// In dB.
    pub snr: f32,
    /// The concentrator's RF chain.
    pub rf_chain: u32,
    /// In degrees.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub latitude: f32,
    /// In degrees.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub longitude: f32,
    /// In metres.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub altitude: i32,
    /// In metres.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub location_accuracy: i32,
    /// The source of the location: `gps`, `config`, `registry` or `ip_geolocation`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub location_source: String,
}

/// A downlink, as published on `<app_id>/devices/<dev_id>/down`, with either bytes or fields.
///
/// A member that is null counts as absent, as in v2: Node-RED sends such members.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Downlink {
    /// The LoRaWAN port; zero leaves it to the encoder, and otherwise means 1.
    #[serde(default, deserialize_with = "null_is_default")]
    pub port: u8,
    /// True if the device has to acknowledge it.
    #[serde(default, skip_serializing_if = "is_false", deserialize_with = "null_is_default")]
    pub confirmed: bool,
    /// Its position in the queue: `replace` (default), `first` or `last`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The payload; base64 in JSON.
    #[serde(default, with = "base64_or_null", skip_serializing_if = "Option::is_none")]
    pub payload_raw: Option<Vec<u8>>,
    /// The encoder's input: a JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_fields: Option<Box<RawValue>>,
}

/// A downlink that was sent, as `…/events/down/sent` shows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SentDownlink {
    /// The application.
    pub app_id: AppId,
    /// The device.
    pub dev_id: DevId,
    /// The LoRaWAN port.
    pub port: u8,
    /// True if the device has to acknowledge it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub confirmed: bool,
    /// The payload; base64 in JSON.
    #[serde(default, with = "base64_or_null", skip_serializing_if = "Option::is_none")]
    pub payload_raw: Option<Vec<u8>>,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn null_is_default<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

pub(crate) mod base64_or_null {
    //! Serializes bytes as base64, and `None` as null.

    use base64::{Engine, engine::general_purpose::STANDARD};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => serializer.serialize_str(&STANDARD.encode(bytes)),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| crate::decode_base64(&text).map_err(serde::de::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uplink_has_the_keys_of_v2_in_order() {
        let uplink = Uplink {
            app_id: "my-app".parse().unwrap(),
            dev_id: "dev-1".parse().unwrap(),
            hardware_serial: "0102030405060708".parse().unwrap(),
            port: 1,
            counter: 0,
            confirmed: false,
            is_retry: false,
            payload_raw: Some(vec![1, 2]),
            payload_fields: RawValue::from_string(r#"{"b":1,"a":2}"#.into()).ok(),
            normalized_payload: None,
            metadata: Metadata { time: "2017-01-17T14:47:09.74Z".into(), ..Metadata::default() },
            attributes: BTreeMap::new(),
            revision: 0,
            corrects: String::new(),
        };
        let expected = r#"{"app_id":"my-app","dev_id":"dev-1","hardware_serial":"0102030405060708","port":1,"counter":0,"payload_raw":"AQI=","payload_fields":{"b":1,"a":2},"metadata":{"time":"2017-01-17T14:47:09.74Z"}}"#;
        assert_eq!(serde_json::to_string(&uplink).unwrap(), expected);
    }
}
