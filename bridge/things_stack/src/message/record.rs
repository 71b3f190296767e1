//! An uplink as the history of the bridge has it.

use bridge::{message::radio::readable_items, record::ReceivedUplink};
use types::Timestamp;

use super::{radio, uplink::UplinkMessage};

impl UplinkMessage<'_> {
    /// The parts that history has, of an uplink that was received at this time.
    pub(crate) fn to_received(&self, received: Timestamp) -> ReceivedUplink<'_> {
        let airtime: String = self.uplink.get("consumed_airtime").unwrap_or_default();
        let settings = self.uplink.get("settings").unwrap_or_default();
        let gateways = self.uplink.raw("rx_metadata").map(readable_items).unwrap_or_default();
        ReceivedUplink {
            received,
            port: self.port,
            counter: self.identity.f_cnt,
            confirmed: self.uplink.get("confirmed").unwrap_or_default(),
            payload: &self.payload,
            metadata: radio::metadata(&settings, gateways, &airtime),
            // The Things Stack has none.
            profile_id: String::new(),
            profile_name: String::new(),
        }
    }
}
