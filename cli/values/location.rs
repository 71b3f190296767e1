//! Locations as arguments: `latitude,longitude` or `latitude,longitude,altitude`.

use std::{ops::RangeInclusive, str::FromStr};

use types::{ALTITUDES, LATITUDES, LONGITUDES};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Location {
    /// Degrees, -90 to 90.
    pub(crate) latitude: f64,
    /// Degrees, -180 to 180.
    pub(crate) longitude: f64,
    pub(crate) altitude: Option<i32>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a location has a latitude from -90 to 90 degrees, a longitude from -180 to 180 degrees, and possibly an altitude from \
     -12,000 to 40,000,000 metres, as in 52.37,4.89,12"
)]
pub(crate) struct BadLocation;

impl FromStr for Location {
    type Err = BadLocation;

    fn from_str(text: &str) -> Result<Self, BadLocation> {
        let mut parts = text.split(',').map(str::trim);
        let mut degrees = |range: RangeInclusive<f64>| {
            let number: f64 = parts.next()?.parse().ok()?;
            range.contains(&number).then_some(number)
        };
        let (latitude, longitude) = (degrees(LATITUDES).ok_or(BadLocation)?, degrees(LONGITUDES).ok_or(BadLocation)?);
        let altitude: Option<i32> = parts.next().map(str::parse).transpose().map_err(|_| BadLocation)?;
        if altitude.is_some_and(|metres| !ALTITUDES.contains(&metres)) {
            return Err(BadLocation);
        }
        if parts.next().is_some() { Err(BadLocation) } else { Ok(Self { latitude, longitude, altitude }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_has_two_or_three_numbers() {
        for (text, latitude, longitude, altitude) in [
            ("52.37,4.89", 52.37, 4.89, None),
            (" -90, 180 ,-3 ", -90.0, 180.0, Some(-3)),
            ("0,0,0", 0.0, 0.0, Some(0)),
        ] {
            assert_eq!(text.parse(), Ok(Location { latitude, longitude, altitude }), "{text}");
        }
        for text in [
            "",
            "52",
            "52,",
            "91,0",
            "0,181",
            "NaN,0",
            "inf,0",
            "1,2,3.5",
            "1,2,3,4",
            "1,2,-12001",
            "1,2,40000001",
            "a,b",
        ] {
            assert_eq!(text.parse::<Location>(), Err(BadLocation), "{text}");
        }
    }
}
