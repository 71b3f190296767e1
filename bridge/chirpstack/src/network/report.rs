//! Events of ChirpStack as reports that do not depend on the network.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bridge::message::radio::{lenient, lenient_list};
use serde::Deserialize;
use serde_json::value::RawValue;
use types::{
    DevAddr, DevEui, DownlinkConfig, DownlinkOutcome, DownlinkReport, NetworkDevice, NetworkEvent, NetworkJoin,
    NetworkUplink, Timestamp,
};

use crate::event::{
    other::DOWNLINK_CODES,
    radio::{self, RxInfo, TxInfo},
};

/// Reasons why an event cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("it is not JSON ({0}): set `json=true` in ChirpStack's [integration.mqtt]")]
    NotJson(serde_json::Error),
    #[error("it is not an event of ChirpStack 4: {0}")]
    NotEvent(serde_json::Error),
    #[error("`{0}` is missing or malformed")]
    Member(&'static str),
    #[error("its payload is encrypted end to end: Airlock does not have the key of the join server")]
    Encrypted,
}

/// The members of all types of events that are read. A proto3 writer may leave out what is zero or empty.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Event<'a> {
    #[serde(deserialize_with = "lenient")]
    time: Option<Timestamp>,
    deduplication_id: String,
    device_info: DeviceInfo,
    dev_addr: String,
    f_port: u8,
    f_cnt: u32,
    confirmed: bool,
    data: String,
    #[serde(deserialize_with = "lenient_list")]
    rx_info: Vec<RxInfo>,
    #[serde(deserialize_with = "lenient")]
    tx_info: TxInfo,
    #[serde(borrow)]
    join_server_context: Option<&'a RawValue>,
    queue_item_id: String,
    f_cnt_down: u32,
    gateway_id: String,
    acknowledged: bool,
    code: String,
    description: String,
    context: BTreeMap<String, String>,
}

impl From<serde_json::Error> for Unreadable {
    fn from(error: serde_json::Error) -> Self {
        if error.is_data() { Self::NotEvent(error) } else { Self::NotJson(error) }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DeviceInfo {
    #[serde(deserialize_with = "lenient")]
    device_name: String,
    dev_eui: String,
    #[serde(deserialize_with = "lenient")]
    tags: BTreeMap<String, String>,
}

/// The report of an event.
pub(crate) struct Report {
    /// None if it says nothing that an application of v2 learns.
    pub(crate) event: Option<NetworkEvent>,
    /// Equal in copies of the same event; empty if it has no such id.
    pub(crate) deduplication_id: String,
}

impl Report {
    /// Reads the event `name` of the device that the topic names.
    pub(crate) fn read(name: &str, dev_eui: &str, payload: &[u8]) -> Result<Self, Unreadable> {
        if !["up", "join", "txack", "ack", "log"].contains(&name) {
            return Ok(Self { event: None, deduplication_id: String::new() });
        }
        let event: Event<'_> = serde_json::from_slice(payload)?;
        let deduplication_id = event.deduplication_id.clone();
        let device = event.device(dev_eui)?;
        let event = match name {
            "up" => Some(NetworkEvent::Uplink(Box::new(event.uplink(device)?))),
            "join" => Some(NetworkEvent::Join(event.join(device)?)),
            _ => event.downlink(name, device).map(NetworkEvent::Downlink),
        };
        Ok(Self { event, deduplication_id })
    }
}

impl Event<'_> {
    /// The device, which must be that of the topic: access control at the broker has checked that, unlike the body.
    fn device(&self, dev_eui: &str) -> Result<NetworkDevice, Unreadable> {
        let DeviceInfo { device_name, dev_eui: named, tags } = &self.device_info;
        let is_same = named.eq_ignore_ascii_case(dev_eui);
        let parsed = dev_eui.parse().ok().filter(|dev_eui: &DevEui| is_same && !dev_eui.is_zero());
        let dev_eui = parsed.ok_or(Unreadable::Member("deviceInfo.devEui"))?;
        Ok(NetworkDevice { dev_eui, name: device_name.clone(), tags: tags.clone(), ..NetworkDevice::default() })
    }

    fn uplink(self, device: NetworkDevice) -> Result<NetworkUplink, Unreadable> {
        if self.join_server_context.is_some_and(|context| context.get() != "null") {
            return Err(Unreadable::Encrypted);
        }
        Ok(NetworkUplink {
            device,
            port: self.f_port,
            f_cnt: self.f_cnt,
            confirmed: self.confirmed,
            payload: STANDARD.decode(self.data).map_err(|_| Unreadable::Member("data"))?,
            received: self.time,
            metadata: radio::metadata(&self.tx_info, &self.rx_info),
            variables: None,
            warnings: Vec::new(),
        })
    }

    fn join(self, device: NetworkDevice) -> Result<NetworkJoin, Unreadable> {
        let dev_addr: Option<DevAddr> = self.dev_addr.parse().ok();
        let dev_addr = dev_addr.filter(|dev_addr| !dev_addr.is_zero()).ok_or(Unreadable::Member("devAddr"))?;
        Ok(NetworkJoin { device, dev_addr, received: self.time })
    }

    /// Returns the outcome of a downlink; `None` for those that the network sends of its own accord.
    fn downlink(mut self, name: &str, device: NetworkDevice) -> Option<DownlinkReport> {
        let id = match name {
            "log" => self.context.remove("queue_item_id").unwrap_or_default(),
            _ => std::mem::take(&mut self.queue_item_id),
        };
        let outcome = match name {
            "log" if !DOWNLINK_CODES.contains(&self.code.as_str()) => return None,
            "log" => DownlinkOutcome::Failed(self.description),
            _ if id.is_empty() => return None,
            "txack" => {
                let config = DownlinkConfig { counter: self.f_cnt_down, ..radio::config(&self.tx_info) };
                DownlinkOutcome::Sent { gateway_id: radio::gateway_id(&self.gateway_id), config }
            }
            _ if self.acknowledged => DownlinkOutcome::Acknowledged,
            _ => DownlinkOutcome::NotAcknowledged,
        };
        Some(DownlinkReport { device, id, outcome })
    }
}

#[cfg(test)]
mod tests;
