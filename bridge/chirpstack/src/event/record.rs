//! An uplink as the history of the bridge has it.

use api::chirpstack_events::integration::UplinkEvent as UplinkMessage;
use bridge::{message::raw_object::RawObject, record::ReceivedUplink};
use prost::Message;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
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

/// The name of the device profile.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Named {
    device_profile_name: String,
}

impl UplinkEvent<'_> {
    /// What history has of an uplink that was received at this time.
    pub(crate) fn to_received(&self, received: Timestamp) -> ReceivedUplink<'_> {
        let Members { counter, confirmed, profile_name, rx, tx } = match &self.form {
            Form::Json(members) => Members::of_json(members),
            Form::Protobuf(entry) => UplinkMessage::decode(&*entry.value).map(Members::from).unwrap_or_default(),
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
        let Named { device_profile_name } = members.get("deviceInfo").unwrap_or_default();
        Self {
            counter: members.get("fCnt").unwrap_or_default(),
            confirmed: members.get("confirmed").unwrap_or_default(),
            profile_name: device_profile_name,
            rx: members.get("rxInfo").unwrap_or_default(),
            tx: members.get("txInfo").unwrap_or_default(),
        }
    }
}

impl From<UplinkMessage> for Members {
    fn from(uplink: UplinkMessage) -> Self {
        Self {
            counter: uplink.f_cnt,
            confirmed: uplink.confirmed,
            profile_name: uplink.device_info.map(|device| device.device_profile_name).unwrap_or_default(),
            rx: read(&uplink.rx_info),
            tx: read(&uplink.tx_info),
        }
    }
}

/// Reads a part of a message as in JSON, so that there is one reader of both forms.
fn read<T: DeserializeOwned + Default>(part: &impl Serialize) -> T {
    serde_json::to_string(part).ok().and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default()
}
