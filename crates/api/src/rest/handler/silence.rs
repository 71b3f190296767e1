//! Bodies about silent devices, which v2 did not have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When devices count as silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Silence {
    /// Time without an uplink, in seconds, after which a device counts as silent, and the event `silent` is published:
    /// 60 to 31622400, or 0 for never.
    pub silent_after_s: u64,
}
