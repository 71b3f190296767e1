//! The result of a formatter for an uplink.

use bridge::codec::outcome;

use super::measurements::Measurements;

/// A decoded uplink.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    pub(crate) uplink: outcome::Decoded,
    pub(crate) normalized: Measurements,
}
