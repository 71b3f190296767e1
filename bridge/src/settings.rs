//! The settings of the bridges, one table for each network.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::chirpstack::ChirpStackSettings;

/// The bridges to networks.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The bridge to ChirpStack 4, `airlock bridge chirpstack`.
    pub chirpstack: ChirpStackSettings,
}
