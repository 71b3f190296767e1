//! Frequency plans.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A frequency plan in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrequencyPlan {
    /// The id, such as `EU_863_870`.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// Where it is used.
    pub description: String,
    /// The URL of its packet forwarder configuration.
    pub url: String,
    /// The frequency band of the gateway hardware, in MHz.
    pub base_freq: u32,
}
