//! Events about devices that applications receive, in the format of The Things Network v2, with their time.

use serde::{Deserialize, Serialize};

use crate::{
    AppEui, AppId, DevAddr, DevEui, DevId, Downlink, Metadata, SentDownlink, SilentAfter, Timestamp,
    message::base64_or_null,
};

/// The payload of `…/events/up/errors`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorEvent {
    /// The error, for users; the first one if there are several.
    pub error: String,
    /// All that went wrong with the uplink, the first included; empty if that is all. v2 had an event for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// Time of the event; v2 did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// The version of the payload functions that ran, if any did; v2 had no versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions_version: Option<u32>,
}

impl ErrorEvent {
    /// One event for all errors of an uplink; `None` if there was none.
    pub fn of(errors: Vec<String>, time: Option<Timestamp>) -> Option<Self> {
        let error = errors.first()?.clone();
        let errors = if errors.len() > 1 { errors } else { Vec::new() };
        Some(Self { error, errors, time, functions_version: None })
    }
}

/// The payload of `…/events/activations` and `…/events/activations/errors`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Activation {
    /// Reason why the device could not join, for users; `None` if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The application EUI in the join request.
    pub app_eui: AppEui,
    /// The device EUI in the join request.
    pub dev_eui: DevEui,
    /// The address assigned to the device; zero, which JSON shows as an empty string, if it could not join.
    pub dev_addr: DevAddr,
    /// Metadata of the join request's reception.
    pub metadata: Metadata,
}

/// The payload of `…/events/create` and `…/events/update`: the device's location, as far as it changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceEvent {
    /// Degrees north; `None` if unchanged or zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latitude: Option<f32>,
    /// Degrees east.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longitude: Option<f32>,
    /// Metres above the sea.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub altitude: Option<i32>,
    /// Time at which the device was set. v2 spells the key this way.
    pub update_at: Timestamp,
}

/// The payload of `…/events/silent`, which v2 did not have: a device has sent nothing for a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SilentEvent {
    /// The application.
    pub app_id: AppId,
    /// The device.
    pub dev_id: DevId,
    /// The device EUI, upper-case hexadecimal.
    #[serde(default, skip_serializing_if = "DevEui::is_zero")]
    pub hardware_serial: DevEui,
    /// Time of the last uplink or join; `None` if the device was not heard since it was created, or since its
    /// application has such events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<Timestamp>,
    /// Time after which the device counts as silent, in seconds.
    pub silent_after_s: SilentAfter,
    /// Time of the event.
    pub time: Timestamp,
}

/// The payload of `…/events/down/scheduled`, `…/events/down/acks` and `…/events/down/errors`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DownlinkEvent {
    /// The error, for users; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The downlink as published, without its schedule; `None` if the message was not a downlink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Downlink>,
    /// Warnings of the encoder; v2 has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Time of the event; v2 did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// The version of the payload functions whose encoder failed or warned; v2 had no versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions_version: Option<u32>,
    /// Names the downlink in all events about it; empty if it was not queued. v2 had no such names.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub downlink_id: String,
}

/// The payload of `…/events/down/sent`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DownlinkSentEvent {
    /// The whole frame, encrypted; base64 in JSON. `None` if the network does not show it.
    #[serde(default, with = "base64_or_null", skip_serializing_if = "Option::is_none")]
    pub payload: Option<Vec<u8>>,
    /// The downlink.
    pub message: SentDownlink,
    /// The gateway that sent it; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gateway_id: String,
    /// The radio settings of the transmission.
    pub config: DownlinkConfig,
    /// Time of the event; v2 did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// Names the downlink in all events about it; empty if it only answers the device. v2 had no such names.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub downlink_id: String,
}

/// Radio settings of a transmitted downlink. Unknown ones are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DownlinkConfig {
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
    /// The downlink frame counter.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub counter: u32,
    /// In Hz, unlike that of an uplink.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub frequency: u64,
    /// In dBm.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub power: i32,
}

fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_keys_of_v2_in_order() {
        let joined = Activation { dev_addr: "26012345".parse().unwrap(), ..Activation::default() };
        let refused = Activation { error: Some("no".to_owned()), ..Activation::default() };
        for (activation, expected) in [
            (joined, r#"{"app_eui":"","dev_eui":"","dev_addr":"26012345","metadata":{"time":""}}"#),
            (refused, r#"{"error":"no","app_eui":"","dev_eui":"","dev_addr":"","metadata":{"time":""}}"#),
        ] {
            assert_eq!(serde_json::to_string(&activation).unwrap(), expected);
        }
    }

    #[test]
    fn a_silent_device_has_the_keys_of_an_uplink() {
        let time = |secs: i64| Timestamp::from_millis(secs * 1000);
        let event = SilentEvent {
            app_id: "my-app".parse().unwrap(),
            dev_id: "dev-1".parse().unwrap(),
            hardware_serial: "0102030405060708".parse().unwrap(),
            last_seen: Some(time(0)),
            silent_after_s: "2h".parse().unwrap(),
            time: time(7200),
        };
        let expected = r#"{"app_id":"my-app","dev_id":"dev-1","hardware_serial":"0102030405060708","last_seen":"1970-01-01T00:00:00Z","silent_after_s":7200,"time":"1970-01-01T02:00:00Z"}"#;
        assert_eq!(serde_json::to_string(&event).unwrap(), expected);
        assert_eq!(serde_json::from_str::<SilentEvent>(expected).unwrap(), event);
    }

    #[test]
    fn every_member_of_a_downlink_is_optional() {
        for (given, shown) in [
            (r#"{"payload_raw":"AQI="}"#, r#"{"port":0,"payload_raw":"AQI="}"#),
            (r#"{"port":null,"confirmed":null,"payload_raw":"AQ=="}"#, r#"{"port":0,"payload_raw":"AQ=="}"#),
            (r#"{"port":null,"confirmed":null,"payload_fields":null}"#, r#"{"port":0}"#),
            (r#"{"port":5,"schedule":null,"confirmed":false,"payload_raw":null}"#, r#"{"port":5}"#),
            (
                r#"{"app_id":"a","port":1,"confirmed":true,"schedule":"last","payload_fields":{"on":1}}"#,
                r#"{"port":1,"confirmed":true,"schedule":"last","payload_fields":{"on":1}}"#,
            ),
        ] {
            let downlink: Downlink = serde_json::from_str(given).unwrap();
            assert_eq!(serde_json::to_string(&downlink).unwrap(), shown);
        }
        for given in [r#"{"port":256}"#, r#"{"port":-1}"#, r#"{"payload_raw":"%"}"#, "1", ""] {
            assert!(serde_json::from_str::<Downlink>(given).is_err(), "{given}");
        }
    }
}
