//! Bodies of the handler's HTTP API: its messages in the JSON format of v2's gRPC gateway.
//!
//! Members have the order of the messages, defaults are omitted, and camelCase names are accepted too. Converting a
//! body to its message and back loses nothing, so both APIs share the parser of the messages.

mod candidate;
mod delivery;
mod devices;
mod downlink;
mod dry_run;
mod history;
mod silence;
#[cfg(test)]
mod tests;
mod version;
mod webhook;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{AppEui, AppKey, AppSKey, BytesError, DevAddr, DevEui, NwkSKey};

use super::json::{Base64, bytes, float, is_default, null_is_default, number, text_number};
use crate::{handler, lorawan};

pub use self::{
    candidate::{Candidate, NewCandidate, Trial},
    delivery::{Delivery, DeliveryList, DeliveryState, RecentDelivery, RecentDeliveryList, WaitingMessage},
    devices::{ChangedDevices, DeviceMove, DevicesChange, FoundDevices, MovedDevice, NewestUplinks, RefusedDevice},
    downlink::{Downlink, DownlinkList},
    dry_run::{
        Cost, DryDownlink, DryDownlinkResult, DryUplink, DryUplinkResult, FunctionFailure, LogEntry,
        SimulatedUplinkResult, UplinkAnswer, UplinkError, UplinkOutcome,
    },
    history::{
        ChangedField, Chart, ChartPoint, ChartSeries, Correction, DecodeAgain, DecodeReport, FieldExample, LowerLimit,
        NewFailure, Record, RecordList, RefusedMessages, SendAgain, SendReport, SendTo, UNREADABLE_TRAILER, Verdicts,
    },
    silence::Silence,
    version::{
        Abandonment, NewVersion, Version, VersionComparison, VersionFunctions, VersionLabel, VersionList,
        VersionResults,
    },
    webhook::{
        DeadLetter, DeadLetterList, Failing, NewWebhook, Resend, Resent, Webhook, WebhookAnswer, WebhookChange,
        WebhookList,
    },
};

/// An application's payload functions.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Application")]
pub struct HandlerApplication {
    /// The application's id.
    #[serde(alias = "appId", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub app_id: String,
    /// `custom`, `cayennelpp` or another format; stored verbatim.
    #[serde(alias = "payloadFormat", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub payload_format: String,
    /// JavaScript that turns bytes into an object.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub decoder: String,
    /// JavaScript that converts the values of that object.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub converter: String,
    /// JavaScript that decides whether the message is published.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub validator: String,
    /// JavaScript that turns an object into bytes.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub encoder: String,
    /// The access key with which devices register on join; visible with the right `devices`.
    #[serde(
        alias = "registerOnJoinAccessKey",
        skip_serializing_if = "is_default",
        deserialize_with = "null_is_default"
    )]
    pub register_on_join_access_key: String,
}

/// A device of an application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["lorawan_device"]))]
pub struct Device {
    /// The application's id.
    #[serde(alias = "appId", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub app_id: String,
    /// The device's id.
    #[serde(alias = "devId", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub dev_id: String,
    /// The LoRaWAN part of the device.
    #[serde(alias = "lorawanDevice", skip_serializing_if = "Option::is_none")]
    pub lorawan_device: Option<LorawanDevice>,
    /// Degrees north, -90 to 90.
    #[serde(skip_serializing_if = "is_default", with = "float")]
    #[schemars(with = "f32", range(min = -90, max = 90))]
    pub latitude: f32,
    /// Degrees east, -180 to 180.
    #[serde(skip_serializing_if = "is_default", with = "float")]
    #[schemars(with = "f32", range(min = -180, max = 180))]
    pub longitude: f32,
    /// Metres above sea level, -12,000 to 40,000,000.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "number::deserialize")]
    #[schemars(range(min = -12_000, max = 40_000_000))]
    pub altitude: i32,
    /// At most 5 custom attributes, with keys and values of at most 64 bytes.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub attributes: BTreeMap<String, String>,
    /// A description for people.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    #[schemars(length(max = 1024))]
    pub description: String,
}

/// The LoRaWAN part of a device.
///
/// In an update, an omitted or `null` address or key stays unchanged, and an empty one is removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["app_id", "dev_id"]))]
pub struct LorawanDevice {
    /// The EUI of the application; included even if empty.
    #[serde(alias = "appEui", deserialize_with = "null_is_default")]
    pub app_eui: AppEui,
    /// The EUI of the device; included even if empty.
    #[serde(alias = "devEui", deserialize_with = "null_is_default")]
    pub dev_eui: DevEui,
    /// The application id, as in the enclosing device.
    #[serde(alias = "appId", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub app_id: String,
    /// The device id, as in the enclosing device.
    #[serde(alias = "devId", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub dev_id: String,
    /// The device address of the session.
    #[serde(alias = "devAddr", skip_serializing_if = "Option::is_none")]
    pub dev_addr: Option<DevAddr>,
    /// The network session key, which authenticates frames.
    #[serde(alias = "nwkSKey", skip_serializing_if = "Option::is_none")]
    pub nwk_s_key: Option<NwkSKey>,
    /// The application session key, which encrypts payloads.
    #[serde(alias = "appSKey", skip_serializing_if = "Option::is_none")]
    pub app_s_key: Option<AppSKey>,
    /// The application key, with which the device joins.
    #[serde(alias = "appKey", skip_serializing_if = "Option::is_none")]
    pub app_key: Option<AppKey>,
    /// The uplink frame counter.
    #[serde(alias = "fCntUp", skip_serializing_if = "is_default", deserialize_with = "number::deserialize")]
    #[schemars(range(max = u32::MAX))]
    pub f_cnt_up: u32,
    /// The downlink frame counter.
    #[serde(alias = "fCntDown", skip_serializing_if = "is_default", deserialize_with = "number::deserialize")]
    #[schemars(range(max = u32::MAX))]
    pub f_cnt_down: u32,
    /// True if uplinks with repeated frame counters are accepted.
    #[serde(alias = "disableFCntCheck", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub disable_f_cnt_check: bool,
    /// True if frame counters have 32 bits.
    #[serde(alias = "uses32BitFCnt", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub uses32_bit_f_cnt: bool,
    /// Activation constraints, separated by commas: otaa, abp, world, local, private, testing.
    #[serde(alias = "activationConstraints", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub activation_constraints: String,
    /// The last join, or frame of a network broker, in nanoseconds since 1970, as a string. History has other uplinks.
    #[serde(alias = "lastSeen", skip_serializing_if = "is_default", with = "text_number")]
    #[schemars(with = "String")]
    pub last_seen: i64,
}

/// Devices of an application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DeviceList {
    /// The devices; omitted if there are none.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub devices: Vec<Device>,
}

/// An uplink to process as if a device had sent it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SimulatedUplink {
    /// The application's id.
    #[serde(alias = "appId", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub app_id: String,
    /// The device's id.
    #[serde(alias = "devId", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub dev_id: String,
    /// The payload of at most 255 bytes, in base64.
    #[serde(skip_serializing_if = "is_default", with = "bytes")]
    #[schemars(with = "Base64")]
    pub payload: Vec<u8>,
    /// The LoRaWAN port.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "number::deserialize")]
    #[schemars(range(max = 255))]
    pub port: u32,
}

/// An error in the format of v2's gRPC gateway, also used by discovery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct GatewayError {
    /// The error message.
    pub error: String,
    /// The gRPC code, not the HTTP status.
    pub code: i32,
    /// The same as `error`.
    pub message: String,
}

impl std::fmt::Debug for HandlerApplication {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        handler::Application::from(self.clone()).fmt(out)
    }
}

impl From<HandlerApplication> for handler::Application {
    fn from(body: HandlerApplication) -> Self {
        Self {
            app_id: body.app_id,
            payload_format: body.payload_format,
            decoder: body.decoder,
            converter: body.converter,
            validator: body.validator,
            encoder: body.encoder,
            register_on_join_access_key: body.register_on_join_access_key,
        }
    }
}

impl From<handler::Application> for HandlerApplication {
    fn from(message: handler::Application) -> Self {
        Self {
            app_id: message.app_id,
            payload_format: message.payload_format,
            decoder: message.decoder,
            converter: message.converter,
            validator: message.validator,
            encoder: message.encoder,
            register_on_join_access_key: message.register_on_join_access_key,
        }
    }
}

impl From<Device> for handler::Device {
    fn from(body: Device) -> Self {
        Self {
            app_id: body.app_id,
            dev_id: body.dev_id,
            device: body.lorawan_device.map(|lorawan| handler::device::Device::LorawanDevice(lorawan.into())),
            latitude: body.latitude,
            longitude: body.longitude,
            altitude: body.altitude,
            attributes: body.attributes,
            description: body.description,
        }
    }
}

impl TryFrom<handler::Device> for Device {
    type Error = BytesError;

    fn try_from(message: handler::Device) -> Result<Self, BytesError> {
        let lorawan_device = match message.device {
            Some(handler::device::Device::LorawanDevice(lorawan)) => Some(lorawan.try_into()?),
            None => None,
        };
        Ok(Self {
            app_id: message.app_id,
            dev_id: message.dev_id,
            lorawan_device,
            latitude: message.latitude,
            longitude: message.longitude,
            altitude: message.altitude,
            attributes: message.attributes,
            description: message.description,
        })
    }
}

impl From<LorawanDevice> for lorawan::Device {
    fn from(body: LorawanDevice) -> Self {
        Self {
            app_eui: body.app_eui.as_bytes().to_vec(),
            dev_eui: body.dev_eui.as_bytes().to_vec(),
            app_id: body.app_id,
            dev_id: body.dev_id,
            dev_addr: body.dev_addr.map(|dev_addr| dev_addr.as_bytes().to_vec()).unwrap_or_default(),
            nwk_s_key: body.nwk_s_key.map(|key| key.as_bytes().to_vec()).unwrap_or_default(),
            app_s_key: body.app_s_key.map(|key| key.as_bytes().to_vec()).unwrap_or_default(),
            app_key: body.app_key.map(|key| key.as_bytes().to_vec()).unwrap_or_default(),
            f_cnt_up: body.f_cnt_up,
            f_cnt_down: body.f_cnt_down,
            disable_f_cnt_check: body.disable_f_cnt_check,
            uses32_bit_f_cnt: body.uses32_bit_f_cnt,
            activation_constraints: body.activation_constraints,
            used_dev_nonces: Vec::new(),
            used_app_nonces: Vec::new(),
            last_seen: body.last_seen,
        }
    }
}

impl TryFrom<lorawan::Device> for LorawanDevice {
    type Error = BytesError;

    /// Checks the lengths. Nonces are omitted.
    fn try_from(message: lorawan::Device) -> Result<Self, BytesError> {
        Ok(Self {
            app_eui: present(&message.app_eui)?.unwrap_or_default(),
            dev_eui: present(&message.dev_eui)?.unwrap_or_default(),
            app_id: message.app_id,
            dev_id: message.dev_id,
            dev_addr: present(&message.dev_addr)?,
            nwk_s_key: present(&message.nwk_s_key)?,
            app_s_key: present(&message.app_s_key)?,
            app_key: present(&message.app_key)?,
            f_cnt_up: message.f_cnt_up,
            f_cnt_down: message.f_cnt_down,
            disable_f_cnt_check: message.disable_f_cnt_check,
            uses32_bit_f_cnt: message.uses32_bit_f_cnt,
            activation_constraints: message.activation_constraints,
            last_seen: message.last_seen,
        })
    }
}

/// Parses a field of fixed length; an empty field is absent.
fn present<'a, T>(bytes: &'a [u8]) -> Result<Option<T>, BytesError>
where
    T: TryFrom<&'a [u8], Error = BytesError>,
{
    if bytes.is_empty() { Ok(None) } else { T::try_from(bytes).map(Some) }
}
