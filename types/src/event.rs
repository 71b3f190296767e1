//! What applications are told about their devices, in the exact shape of The Things Network v2.

use serde::{Deserialize, Serialize};

use crate::{AppEui, DevAddr, DevEui, Downlink, Metadata, Timestamp};

/// What `…/events/up/errors` carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorEvent {
    /// What went wrong, for people.
    pub error: String,
}

/// What `…/events/activations` and `…/events/activations/errors` carry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Activation {
    /// Why the device did not join, for people; none when it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The application's EUI in the join request.
    pub app_eui: AppEui,
    /// The device's EUI in the join request.
    pub dev_eui: DevEui,
    /// The address that the device got; zero, which JSON shows as an empty text, when it got none.
    pub dev_addr: DevAddr,
    /// When and how the join request was received.
    pub metadata: Metadata,
}

/// What `…/events/create` and `…/events/update` carry: where the device is now, as far as that changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceEvent {
    /// Degrees north; none when it did not change, or is zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latitude: Option<f32>,
    /// Degrees east.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longitude: Option<f32>,
    /// Metres above the sea.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub altitude: Option<i32>,
    /// When the device was set; v2 spells it so.
    pub update_at: Timestamp,
}

/// What `…/events/down/scheduled` and `…/events/down/errors` carry.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DownlinkEvent {
    /// What went wrong, for people; none when nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The downlink as it was published, without its schedule; none when it was no downlink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Downlink>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_keys_of_v2_in_their_order() {
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
    fn a_downlink_reads_with_and_without_its_members() {
        for (given, shown) in [
            (r#"{"payload_raw":"AQI="}"#, r#"{"port":0,"payload_raw":"AQI="}"#),
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
