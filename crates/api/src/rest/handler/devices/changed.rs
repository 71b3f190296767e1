//! Bodies of changes of many devices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::super::json::{is_default, null_is_default};

/// A change of an attribute of devices.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["dev_ids", "key"]))]
pub struct DevicesChange {
    /// The ids of at most 500 devices.
    #[serde(alias = "devIds", deserialize_with = "null_is_default")]
    pub dev_ids: Vec<String>,
    /// The key of the attribute.
    #[serde(deserialize_with = "null_is_default")]
    pub key: String,
    /// Its new value; the attribute is removed if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// The outcome of a change of devices.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ChangedDevices {
    /// Number of devices that were changed.
    pub changed: u32,
    /// Number of devices that were so already.
    pub unchanged: u32,
    /// The devices that were not changed; omitted if there are none.
    #[serde(skip_serializing_if = "is_default")]
    pub refused: Vec<RefusedDevice>,
}

/// A device that was not changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedDevice {
    /// Its id.
    pub dev_id: String,
    /// The reason.
    pub reason: String,
}
