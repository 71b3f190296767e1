//! What a formatter makes of an uplink.

use super::measurements::Measurements;
use crate::codec::outcome;

/// A decoded uplink.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    pub(super) uplink: outcome::Decoded,
    pub(super) normalized: Measurements,
}
