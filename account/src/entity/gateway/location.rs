//! Exact and approximate gateway locations.
//!
//! An approximate location is the center of a grid square, `SQUARE_METRES` wide. A secret offset, different for each
//! gateway, shifts the grid. There is no noise to average out, so repeated requests reveal nothing more, and small
//! moves of the gateway do not show.

use api::rest::account::Location;
use types::{ALTITUDES, LATITUDES, LONGITUDES};

use super::Gateway;
use crate::{Account, Error, Result};

/// The width of a square. Its center is at most 1 km from any point in it.
const SQUARE_METRES: f64 = 1_400.0;
/// The length of a degree of latitude, or of longitude at the equator.
const DEGREE_METRES: f64 = 111_320.0;
/// Limits how wide squares become, in degrees, near the poles.
const COSINE_MIN: f64 = 0.01;
/// Degrees are rounded to 1/100,000, about one metre.
const ROUND: f64 = 100_000.0;

impl Account {
    /// The approximate location of a gateway, if known, without its altitude.
    pub(crate) fn approximate_location(&self, gateway: &Gateway) -> Option<Location> {
        let context = format!("grid of gateway {}", gateway.id);
        let location = gateway.antenna_location?;
        let digest = self.keys.mac(&context, b"");
        let (shift_north, shift_east) = (fraction(&digest.as_ref()[..4]), fraction(&digest.as_ref()[4..8]));
        let step = SQUARE_METRES / DEGREE_METRES;
        let latitude = cell_center(location.latitude?, shift_north, step).clamp(-90.0, 90.0);
        let step = step / latitude.to_radians().cos().max(COSINE_MIN);
        let longitude = cell_center(location.longitude?, shift_east, step);
        let longitude = if longitude.abs() > 180.0 { longitude - 360.0 * longitude.signum() } else { longitude };
        let rounded = |degrees: f64| Some((degrees * ROUND).round() / ROUND);
        Some(Location { longitude: rounded(longitude), latitude: rounded(latitude), altitude: None })
    }
}

pub(super) fn check(location: &Location) -> Result<()> {
    let Location { latitude, longitude, altitude } = location;
    let invalid = |must| Err(Error::Invalid { what: "location", must });
    if latitude.is_some_and(|degrees| !LATITUDES.contains(&degrees))
        || longitude.is_some_and(|degrees| !LONGITUDES.contains(&degrees))
    {
        return invalid("must have a latitude of -90 to 90 and a longitude of -180 to 180");
    }
    if altitude.is_some_and(|metres| !ALTITUDES.contains(&metres)) {
        return invalid("must have an altitude of -12,000 to 40,000,000 metres");
    }
    Ok(())
}

/// Merges a location that a client sent into the known one.
///
/// v2's command line always sends all three members, and zero for those that the user did not set.
pub(super) fn merge(known: Option<Location>, sent: Location) -> Location {
    let known = known.unwrap_or_default();
    let unset = sent.latitude == Some(0.0) && sent.longitude == Some(0.0);
    let set = sent.latitude.is_some() && sent.longitude.is_some() && !unset;
    match sent.altitude {
        Some(0) if set && known.altitude.is_some() => Location { altitude: known.altitude, ..sent },
        Some(altitude) if unset && altitude != 0 && known.latitude.is_some() => {
            Location { altitude: Some(altitude), ..known }
        }
        _ => Location {
            longitude: sent.longitude.or(known.longitude),
            latitude: sent.latitude.or(known.latitude),
            altitude: sent.altitude.or(known.altitude),
        },
    }
}

/// The center of the grid cell that contains `degrees`.
fn cell_center(degrees: f64, shift: f64, step: f64) -> f64 {
    ((degrees / step - shift).floor() + 0.5 + shift) * step
}

/// Maps four bytes to a number from 0 (inclusive) to 1 (exclusive).
fn fraction(bytes: &[u8]) -> f64 {
    let whole = bytes.iter().fold(0u32, |whole, byte| whole << 8 | u32::from(*byte));
    f64::from(whole) / 4_294_967_296.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(latitude: f64, longitude: f64, altitude: i32) -> Location {
        Location { latitude: Some(latitude), longitude: Some(longitude), altitude: Some(altitude) }
    }

    #[test]
    fn what_the_old_command_line_does_not_mean_is_not_stored() {
        let known = Some(location(52.0, 4.0, 12));
        let only = |altitude| Location { altitude: Some(altitude), ..Location::default() };
        let cases = [
            (None, location(52.0, 4.0, 0), location(52.0, 4.0, 0)),
            (known, location(53.0, 5.0, 0), location(53.0, 5.0, 12)),
            (known, location(53.0, 5.0, 7), location(53.0, 5.0, 7)),
            (known, location(0.0, 0.0, 7), location(52.0, 4.0, 7)),
            (known, location(0.0, 0.0, 0), location(0.0, 0.0, 0)),
            (known, only(0), location(52.0, 4.0, 0)),
            (None, location(0.0, 0.0, 7), location(0.0, 0.0, 7)),
        ];
        for (known, sent, expected) in cases {
            assert_eq!(merge(known, sent), expected, "{sent:?} into {known:?}");
        }
    }

    #[test]
    fn the_middle_is_the_same_for_a_whole_step_and_never_far() {
        for (degrees, shift) in [(52.0, 0.0), (-33.9, 0.25), (0.0, 0.99), (0.004, 0.5)] {
            let step = 0.0125;
            let found = cell_center(degrees, shift, step);
            assert!((found - degrees).abs() <= step / 2.0 + 1e-9);
            for part in [-0.49, 0.0, 0.49] {
                assert!((cell_center(found + part * step, shift, step) - found).abs() < 1e-9, "{degrees}");
            }
        }
    }
}
