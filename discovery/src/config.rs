//! What an operator may set about discovery.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The settings of discovery.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The account services whose components may announce themselves; when empty, every one that is trusted.
    pub announce_issuers: Vec<String>,
}
