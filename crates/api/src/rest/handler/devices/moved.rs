//! Bodies of moves of devices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::super::json::{is_default, null_is_default, number};

/// The place to which a device moves.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["app_id"]))]
pub struct DeviceMove {
    /// Its new application.
    #[serde(alias = "appId", deserialize_with = "null_is_default")]
    pub app_id: String,
    /// Its id there; the same if omitted.
    #[serde(alias = "devId", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub dev_id: String,
}

/// A device that was moved.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MovedDevice {
    /// Its new application.
    pub app_id: String,
    /// Its id there.
    pub dev_id: String,
    /// Number of downlinks that waited for it, and were dropped.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "number::deserialize")]
    pub dropped_downlinks: u32,
}
