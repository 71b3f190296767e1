//! An uplink as the history of the bridge has it.

use api::chirpstack_events::gw;
use bridge::{
    message::{radio::readable_items, raw_object::RawObject},
    record::ReceivedUplink,
};
use prost::Message;
use serde::Deserialize;
use types::Timestamp;

use super::{
    Form, UplinkEvent,
    radio::{self, RxInfo, TxInfo},
};

/// Members that no codec needs.
#[derive(Default)]
struct Members {
    counter: u32,
    confirmed: bool,
    profile_name: String,
    rx: Vec<RxInfo>,
    tx: TxInfo,
}

/// The name of the device profile in JSON.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DeviceProfileName {
    device_profile_name: String,
}

/// These members in protocol buffers.
#[derive(Clone, PartialEq, Message)]
struct UplinkRest {
    #[prost(message, optional, tag = "3")]
    device_info: Option<DeviceRest>,
    #[prost(uint32, tag = "7")]
    f_cnt: u32,
    #[prost(bool, tag = "9")]
    confirmed: bool,
    #[prost(message, repeated, tag = "12")]
    rx_info: Vec<gw::UplinkRxInfo>,
    #[prost(message, optional, tag = "13")]
    tx_info: Option<gw::UplinkTxInfo>,
}

#[derive(Clone, PartialEq, Message)]
struct DeviceRest {
    #[prost(string, tag = "6")]
    device_profile_name: String,
}

impl UplinkEvent<'_> {
    /// The parts that history has, of an uplink that was received at this time.
    pub(crate) fn to_received(&self, received: Timestamp) -> ReceivedUplink<'_> {
        let Members { counter, confirmed, profile_name, rx, tx } = match &self.form {
            Form::Json(members) => Members::of_json(members),
            Form::Protobuf(entry) => UplinkRest::decode(&*entry.value).map(Members::from).unwrap_or_default(),
        };
        ReceivedUplink {
            received,
            port: self.port,
            counter,
            confirmed,
            payload: &self.data,
            metadata: radio::metadata(&tx, &rx),
            profile_id: self.device.device_profile_id.clone(),
            profile_name,
        }
    }
}

impl Members {
    fn of_json(members: &RawObject<'_>) -> Self {
        let DeviceProfileName { device_profile_name } = members.get("deviceInfo").unwrap_or_default();
        Self {
            counter: members.get("fCnt").unwrap_or_default(),
            confirmed: members.get("confirmed").unwrap_or_default(),
            profile_name: device_profile_name,
            rx: members.raw("rxInfo").map(readable_items).unwrap_or_default(),
            tx: members.get("txInfo").unwrap_or_default(),
        }
    }
}

impl From<UplinkRest> for Members {
    fn from(uplink: UplinkRest) -> Self {
        Self {
            counter: uplink.f_cnt,
            confirmed: uplink.confirmed,
            profile_name: uplink.device_info.unwrap_or_default().device_profile_name,
            rx: uplink.rx_info.into_iter().map(RxInfo::from).collect(),
            tx: uplink.tx_info.map(TxInfo::from).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_that_cannot_be_read_hides_no_others() {
        let event = br#"{"deviceInfo": {"deviceProfileId": "p", "devEui": "1"},
            "rxInfo": [{"gatewayId": "01"}, "no gateway", {"gatewayId": "02"}]}"#;
        let metadata = UplinkEvent::parse(event).unwrap().to_received(Timestamp::default()).metadata;
        let ids: Vec<_> = metadata.gateways.iter().map(|gateway| &*gateway.gtw_id).collect();
        assert_eq!(ids, ["eui-01", "eui-02"]);
    }
}
