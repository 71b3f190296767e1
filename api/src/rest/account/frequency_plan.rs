//! Frequency plans.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A frequency plan, as in the list of all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrequencyPlan {
    /// Its id, such as `EU_863_870`.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Where it is used.
    pub description: String,
    /// Where its packet forwarder configuration is.
    pub url: String,
    /// The band that a gateway's hardware must be made for, in MHz.
    pub base_freq: u32,
}
