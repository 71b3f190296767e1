//! Bodies about devices that were found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{super::json::is_default, Device, Record};

/// Devices that were found.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FoundDevices {
    /// The devices, without keys.
    pub devices: Vec<Device>,
    /// Number of devices that were found, on all pages.
    pub total: u32,
    /// Number of those before this page.
    pub position: u32,
    /// `after` of the next page; omitted on the last one.
    #[serde(skip_serializing_if = "is_default")]
    pub next: String,
    /// True if the application has more devices than are searched: the first 100,000 by id.
    #[serde(skip_serializing_if = "is_default")]
    pub is_cut: bool,
    /// True if devices may have been seen later than it seems, because history lacks uplinks or cannot be read.
    #[serde(skip_serializing_if = "is_default")]
    pub is_partial: bool,
}

/// The newest uplinks of some devices.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NewestUplinks {
    /// One device after the other, the newest first. Without metadata, extra, normalized fields, logs and warnings.
    pub uplinks: Vec<Record>,
    /// The devices whose uplinks are not here: history could not be read, or not within a second, or they have no room.
    #[serde(skip_serializing_if = "is_default")]
    pub unknown: Vec<String>,
}
