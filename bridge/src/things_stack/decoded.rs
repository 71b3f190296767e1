//! What a formatter makes of an uplink.

use serde_json::value::RawValue;

use crate::outcome;

/// A decoded uplink.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    pub(super) uplink: outcome::Decoded,
    pub(super) normalized: Vec<Box<RawValue>>,
    pub(super) normalized_warnings: Vec<String>,
}
