//! What a formatter makes of an uplink.

use super::measurements::Measurements;
use crate::codec::outcome;

/// A decoded uplink.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    pub(crate) uplink: outcome::Decoded,
    pub(crate) normalized: Measurements,
}
