//! The bounds of places on Earth.

use std::ops::RangeInclusive;

/// The latitudes that there are, in degrees north.
pub const LATITUDES: RangeInclusive<f64> = -90.0..=90.0;
/// The longitudes that there are, in degrees east.
pub const LONGITUDES: RangeInclusive<f64> = -180.0..=180.0;
/// Range of altitudes of antennas and devices, in metres above the sea: from the deepest trench to geostationary
/// satellites.
pub const ALTITUDES: RangeInclusive<i32> = -12_000..=40_000_000;
