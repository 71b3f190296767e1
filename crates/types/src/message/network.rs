//! Events of devices and their reports, independent of the network that sends them.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{AppEui, DevAddr, DevEui, DownlinkConfig, Kind, Kinded, Metadata, Timestamp};

/// An event that a network reports about a device.
#[derive(Clone, Debug)]
pub enum NetworkEvent {
    /// It sent an uplink.
    Uplink(Box<NetworkUplink>),
    /// It joined.
    Join(NetworkJoin),
    /// Something became of a downlink for it.
    Downlink(DownlinkReport),
}

impl NetworkEvent {
    /// Returns the device of the event.
    pub fn device(&self) -> &NetworkDevice {
        match self {
            Self::Uplink(uplink) => &uplink.device,
            Self::Join(join) => &join.device,
            Self::Downlink(report) => &report.device,
        }
    }

    /// Returns the time at which the network received the uplink or join; `None` if it does not say, and for downlinks.
    pub fn received(&self) -> Option<Timestamp> {
        match self {
            Self::Uplink(uplink) => uplink.received,
            Self::Join(join) => join.received,
            Self::Downlink(_) => None,
        }
    }

    /// Returns the device, to add data from other sources.
    pub fn device_mut(&mut self) -> &mut NetworkDevice {
        match self {
            Self::Uplink(uplink) => &mut uplink.device,
            Self::Join(join) => &mut join.device,
            Self::Downlink(report) => &mut report.device,
        }
    }
}

/// Where the ids of devices come from that are registered when they are first heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceIds {
    /// From the name in the network, or from the DevEUI if the name makes no id, or one that is taken.
    #[default]
    Name,
    /// From the DevEUI.
    Eui,
}

/// A device as its network describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkDevice {
    /// Its EUI, which identifies it.
    pub dev_eui: DevEui,
    /// The EUI of its join server, zero if it has none; `None` if the network does not say.
    pub app_eui: Option<AppEui>,
    /// True if the network may later know more than it does now. Such a device is not registered: its events wait.
    pub is_provisional: bool,
    /// Its name there.
    pub name: String,
    /// Its tags there.
    pub tags: BTreeMap<String, String>,
}

/// An uplink that a network received and decrypted.
#[derive(Clone, Debug, Default)]
pub struct NetworkUplink {
    /// The device that sent it.
    pub device: NetworkDevice,
    /// The LoRaWAN port; zero if it has no payload for the application.
    pub port: u8,
    /// The frame counter.
    pub f_cnt: u32,
    /// True if the device requested an acknowledgement.
    pub confirmed: bool,
    /// The decrypted payload.
    pub payload: Vec<u8>,
    /// Time of reception; `None` if the network does not say.
    pub received: Option<Timestamp>,
    /// Metadata of the reception, without its time.
    pub metadata: Metadata,
    /// Variables that the network keeps for the device's decoder, a JSON object. They may be secrets.
    pub variables: Option<Box<RawValue>>,
    /// Warnings for the application, such as the reason why there are no variables.
    pub warnings: Vec<String>,
}

/// A device that has joined a network.
#[derive(Clone, Debug, Default)]
pub struct NetworkJoin {
    /// The device that joined.
    pub device: NetworkDevice,
    /// The address that the network chose.
    pub dev_addr: DevAddr,
    /// Time of the join; `None` if the network does not say.
    pub received: Option<Timestamp>,
}

/// The fate of a downlink that a network accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct DownlinkReport {
    /// The device that the downlink is for.
    pub device: NetworkDevice,
    /// The id that the network gave it.
    pub id: String,
    /// Sent, acknowledged or failed.
    pub outcome: DownlinkOutcome,
}

/// Possible outcomes of a downlink.
#[derive(Clone, Debug, PartialEq)]
pub enum DownlinkOutcome {
    /// A gateway sent it.
    Sent {
        /// The gateway; empty if the network does not say.
        gateway_id: String,
        /// Radio settings of the transmission.
        config: DownlinkConfig,
    },
    /// The device acknowledged it.
    Acknowledged,
    /// The device did not acknowledge it, so it should be sent again.
    NotAcknowledged,
    /// It will not be sent any more, for this reason.
    Failed(String),
}

/// A downlink for a network to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkDownlink {
    /// An id for networks that let us choose it. A downlink that is handed over again has the same.
    pub id: String,
    /// The AppEUI of the device, for networks in which devices may share a DevEUI; zero if it has none.
    pub app_eui: AppEui,
    /// The LoRaWAN port.
    pub port: u8,
    /// True if the device has to acknowledge it.
    pub confirmed: bool,
    /// Its payload, which the network encrypts.
    pub payload: Vec<u8>,
    /// True if it replaces the downlinks that are waiting in the network.
    pub replaces_others: bool,
}

/// Reason why an event of a network, or a downlink for it, was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NetworkRefusal {
    kind: Kind,
    reason: String,
}

impl NetworkRefusal {
    /// Makes a refusal of this kind, with the reason as its text.
    pub fn new(kind: Kind, reason: impl fmt::Display) -> Self {
        Self { kind, reason: reason.to_string() }
    }

    /// The reason, in words for users.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns true if it may have been accepted nevertheless, because no answer came.
    pub fn may_be_taken(&self) -> bool {
        self.kind == Kind::Timeout
    }

    /// Returns true if the same may be accepted later.
    pub fn may_pass(&self) -> bool {
        matches!(self.kind, Kind::Unavailable | Kind::Timeout | Kind::Exhausted | Kind::Conflict)
    }
}

impl Kinded for NetworkRefusal {
    fn kind(&self) -> Kind {
        self.kind
    }
}
