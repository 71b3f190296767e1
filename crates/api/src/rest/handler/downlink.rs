//! Bodies about downlinks. v2 only had them over MQTT; these have the members of its messages there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::json::{Base64, bytes, is_default, null_is_default, number};

/// A downlink for a device, with either bytes or fields.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Downlink {
    /// The LoRaWAN port; zero leaves it to the encoder, and otherwise means 1.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "number::deserialize")]
    #[schemars(range(max = 223))]
    pub port: u32,
    /// True if the device has to acknowledge it.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub confirmed: bool,
    /// Its position in the queue: `replace` (default), `first` or `last`.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    #[schemars(extend("enum" = ["replace", "first", "last"]))]
    pub schedule: String,
    /// The payload, in base64.
    #[serde(alias = "payloadRaw", skip_serializing_if = "is_default", with = "bytes")]
    #[schemars(with = "Base64")]
    pub payload_raw: Vec<u8>,
    /// The encoder's input.
    #[serde(alias = "payloadFields", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub payload_fields: Option<Box<RawValue>>,
    /// The encoder's warnings, in the response.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    #[schemars(extend("readOnly" = true))]
    pub warnings: Vec<String>,
}

/// The queue of a device.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DownlinkList {
    /// The downlinks, in the order in which they are sent.
    pub downlinks: Vec<Downlink>,
}
