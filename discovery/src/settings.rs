//! Settings of the discovery service.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the discovery service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The account services whose components may announce themselves; if empty, all trusted account services.
    pub announce_issuers: Vec<String>,
}
