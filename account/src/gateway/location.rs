//! Where a gateway is, exactly or roughly.
//!
//! A rough location is the middle of a square, `SQUARE_METRES` wide, in a grid that is shifted by amounts which only
//! this service can know, different for every gateway. It says which square, and nothing more however often it is
//! asked: there is no noise that would average out, and a gateway that is moved a little stays where it was.

use api::rest::account::Location;

use super::Gateway;
use crate::{Account, Error, Result};

/// How wide the squares are. The middle of one is at most 1 km from any place in it.
const SQUARE_METRES: f64 = 1_400.0;
/// How long a degree of latitude is; one of longitude is as long at the equator.
const DEGREE_METRES: f64 = 111_320.0;
/// Nearer to the poles than this, in cosines of latitude, squares are not made any wider in degrees.
const COSINE_MIN: f64 = 0.01;
/// Degrees are rounded to this part of one, about a metre.
const ROUND: f64 = 100_000.0;

impl Account {
    /// Roughly where a gateway is, if that is known; how high is left out.
    pub(crate) fn rough_location(&self, gateway: &Gateway) -> Option<Location> {
        let place = format!("grid of gateway {}", gateway.id);
        let location = gateway.antenna_location?;
        let digest = self.keys.sign(&place, b"");
        let (shift_north, shift_east) = (fraction(&digest.as_ref()[..4]), fraction(&digest.as_ref()[4..8]));
        let step = SQUARE_METRES / DEGREE_METRES;
        let latitude = middle(location.latitude?, shift_north, step).clamp(-90.0, 90.0);
        let step = step / latitude.to_radians().cos().max(COSINE_MIN);
        let longitude = middle(location.longitude?, shift_east, step);
        let longitude = if longitude.abs() > 180.0 { longitude - 360.0 * longitude.signum() } else { longitude };
        let rounded = |degrees: f64| Some((degrees * ROUND).round() / ROUND);
        Some(Location { longitude: rounded(longitude), latitude: rounded(latitude), altitude: None })
    }
}

/// Refuses places that are not on Earth.
pub(super) fn check(location: &Location) -> Result<()> {
    let within = |degrees: Option<f64>, max: f64| degrees.is_none_or(|degrees| degrees.abs() <= max);
    if within(location.latitude, 90.0) && within(location.longitude, 180.0) {
        return Ok(());
    }
    Err(Error::Invalid { what: "location", must: "must have a latitude of -90 to 90 and a longitude of -180 to 180" })
}

/// Puts what was sent into what is known.
///
/// The command line of v2 always sends all three members, and zero for what it does not mean.
pub(super) fn merge(known: Option<Location>, sent: Location) -> Location {
    let known = known.unwrap_or_default();
    let nowhere = sent.latitude == Some(0.0) && sent.longitude == Some(0.0);
    let somewhere = sent.latitude.is_some() && sent.longitude.is_some() && !nowhere;
    match sent.altitude {
        Some(0) if somewhere && known.altitude.is_some() => Location { altitude: known.altitude, ..sent },
        Some(altitude) if nowhere && altitude != 0 && known.latitude.is_some() => {
            Location { altitude: Some(altitude), ..known }
        }
        _ => Location {
            longitude: sent.longitude.or(known.longitude),
            latitude: sent.latitude.or(known.latitude),
            altitude: sent.altitude.or(known.altitude),
        },
    }
}

/// The middle of the step of a shifted scale that `degrees` lies on.
fn middle(degrees: f64, shift: f64, step: f64) -> f64 {
    ((degrees / step - shift).floor() + 0.5 + shift) * step
}

/// Four bytes as a number from 0 to less than 1.
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
            let found = middle(degrees, shift, step);
            assert!((found - degrees).abs() <= step / 2.0 + 1e-9);
            for part in [-0.49, 0.0, 0.49] {
                assert!((middle(found + part * step, shift, step) - found).abs() < 1e-9, "{degrees}");
            }
        }
    }
}
