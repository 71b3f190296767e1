//! What a network reports about its devices, in words that do not depend on the network.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{AppEui, DevAddr, DevEui, DownlinkConfig, Kind, Kinded, Metadata, Timestamp};

/// What a network reports about a device.
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
    /// The device that it is about.
    pub fn device(&self) -> &NetworkDevice {
        match self {
            Self::Uplink(uplink) => &uplink.device,
            Self::Join(join) => &join.device,
            Self::Downlink(report) => &report.device,
        }
    }

    /// The same, to add what is learned elsewhere.
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
    /// Whether the network may say later what it does not say now. Such a device is not registered: its events wait.
    pub is_provisional: bool,
    /// Its name there.
    pub name: String,
    /// Its tags there.
    pub tags: BTreeMap<String, String>,
}

/// An uplink that a network received and decrypted.
#[derive(Clone, Debug, Default)]
pub struct NetworkUplink {
    /// Who sent it.
    pub device: NetworkDevice,
    /// The LoRaWAN port; zero if it has no payload for the application.
    pub port: u8,
    /// The frame counter.
    pub counter: u32,
    /// Whether the device requested an acknowledgement.
    pub confirmed: bool,
    /// The decrypted payload.
    pub payload: Vec<u8>,
    /// When it was received; none if the network does not say.
    pub received: Option<Timestamp>,
    /// How it was received, without its time.
    pub metadata: Metadata,
    /// What the network keeps for the device's decoder, a JSON object. These may be secrets.
    pub variables: Option<Box<RawValue>>,
    /// What the application should know, such as why there are no variables.
    pub warnings: Vec<String>,
}

/// A device that has joined a network.
#[derive(Clone, Debug, Default)]
pub struct NetworkJoin {
    /// Who joined.
    pub device: NetworkDevice,
    /// The address that the network chose.
    pub dev_addr: DevAddr,
    /// When; none if the network does not say.
    pub received: Option<Timestamp>,
}

/// What became of a downlink that a network took.
#[derive(Clone, Debug, PartialEq)]
pub struct DownlinkReport {
    /// For which device.
    pub device: NetworkDevice,
    /// The id that the network gave it.
    pub id: String,
    /// What became of it.
    pub outcome: DownlinkOutcome,
}

/// What became of a downlink.
#[derive(Clone, Debug, PartialEq)]
pub enum DownlinkOutcome {
    /// A gateway sent it.
    Sent {
        /// Which one; empty if the network does not say.
        gateway_id: String,
        /// How.
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
    /// Whether the device has to acknowledge it.
    pub confirmed: bool,
    /// Its payload, which the network encrypts.
    pub payload: Vec<u8>,
    /// Whether it replaces the downlinks that are waiting in the network.
    pub replaces_others: bool,
}

/// Why an event of a network, or a downlink for it, was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NetworkRefusal {
    kind: Kind,
    reason: String,
}

impl NetworkRefusal {
    /// Why something was not taken.
    pub fn new(kind: Kind, reason: impl fmt::Display) -> Self {
        Self { kind, reason: reason.to_string() }
    }

    /// The reason, for people.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Whether it may have been taken nevertheless, because no answer came.
    pub fn may_be_taken(&self) -> bool {
        self.kind == Kind::Timeout
    }

    /// Whether the same may be taken later.
    pub fn may_pass(&self) -> bool {
        matches!(self.kind, Kind::Unavailable | Kind::Timeout | Kind::Exhausted | Kind::Conflict)
    }
}

impl Kinded for NetworkRefusal {
    fn kind(&self) -> Kind {
        self.kind
    }
}
