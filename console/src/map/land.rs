//! The land of the world within bounds, from `web/land/land.txt`.

/// A ring on each line: whole numbers, of which the first two are a place, and the others steps to the next one.
const RINGS: &str = include_str!("../../../web/land/land.txt");
/// Units of the file in a degree.
const UNITS: f64 = 100.0;
/// Further than that from the equator, the projection of Mercator has no end.
const LATITUDE_MAX: f64 = 85.0;
/// Turns of the globe by which land is repeated, so that a map may lie across the meridian of 180°.
const TURNS: [f64; 3] = [-360.0, 0.0, 360.0];

/// A place: degrees east, and degrees north as the projection of Mercator stretches them.
pub(super) type Point = (f64, f64);

/// A part of the world.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) west: f64,
    pub(super) east: f64,
    pub(super) south: f64,
    pub(super) north: f64,
}

/// The rings of land within bounds. One may lie in another: then it is water.
pub(super) fn within(bounds: Bounds) -> Vec<Vec<Point>> {
    let rings: Vec<_> = RINGS.lines().filter(|line| !line.starts_with('#')).map(ring).collect();
    let turned = TURNS.into_iter().flat_map(|turn| rings.iter().map(move |ring| clipped(ring, turn, bounds)));
    turned.filter(|ring| ring.len() > 2).collect()
}

/// A place of the projection of Mercator.
pub(super) fn projected(latitude: f64, longitude: f64) -> Point {
    let latitude = latitude.clamp(-LATITUDE_MAX, LATITUDE_MAX).to_radians();
    (longitude, latitude.tan().asinh().to_degrees())
}

fn ring(line: &str) -> Vec<Point> {
    let mut numbers = line.split(' ').map_while(|number| number.parse::<i32>().ok());
    let (mut longitude, mut latitude) = (0, 0);
    let mut points = Vec::new();
    while let (Some(east), Some(north)) = (numbers.next(), numbers.next()) {
        longitude += east;
        latitude += north;
        points.push(projected(f64::from(latitude) / UNITS, f64::from(longitude) / UNITS));
    }
    points
}

/// The part of a ring that is within bounds, after a turn of the globe.
fn clipped(ring: &[Point], turn: f64, Bounds { west, east, south, north }: Bounds) -> Vec<Point> {
    let ring: Vec<_> = ring.iter().map(|(east, north)| (east + turn, *north)).collect();
    let ring = cut(&ring, |point| point.0 - west);
    let ring = cut(&ring, |point| east - point.0);
    let ring = cut(&ring, |point| point.1 - south);
    cut(&ring, |point| north - point.1)
}

/// The part of a ring where a distance is not negative, as Sutherland and Hodgman cut it.
fn cut(ring: &[Point], distance: impl Fn(Point) -> f64) -> Vec<Point> {
    let mut kept = Vec::new();
    let Some(mut from) = ring.last().copied() else { return kept };
    for to in ring.iter().copied() {
        let (before, after) = (distance(from), distance(to));
        if (before < 0.0) != (after < 0.0) {
            let part = before / (before - after);
            kept.push((from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part));
        }
        if after >= 0.0 {
            kept.push(to);
        }
        from = to;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of bounds that is land.
    fn land(latitude: f64, longitude: f64) -> f64 {
        let (east, north) = projected(latitude, longitude);
        let bounds = Bounds { west: east - 1.0, east: east + 1.0, south: north - 1.0, north: north + 1.0 };
        let rings = within(bounds);
        for (east, north) in rings.iter().flatten() {
            assert!((bounds.west - 1e-9..=bounds.east + 1e-9).contains(east), "{east}");
            assert!((bounds.south - 1e-9..=bounds.north + 1e-9).contains(north), "{north}");
        }
        let doubled = rings.iter().map(|ring| {
            let next = ring.iter().cycle().skip(1);
            ring.iter().zip(next).map(|(from, to)| from.0 * to.1 - to.0 * from.1).sum::<f64>()
        });
        doubled.sum::<f64>().abs() / 8.0
    }

    #[test]
    fn land_is_where_it_should_be() {
        for (place, latitude, longitude) in [("Berlin", 52.5, 13.4), ("Chukotka", 68.0, -180.0)] {
            assert!(land(latitude, longitude) > 0.99, "{place}: {}", land(latitude, longitude));
        }
        for (place, latitude, longitude) in [("the Atlantic", 30.0, -40.0), ("the Caspian Sea", 42.0, 51.0)] {
            assert!(land(latitude, longitude) < 0.01, "{place}: {}", land(latitude, longitude));
        }
        let coast = land(52.0, 4.5);
        assert!((0.2..0.8).contains(&coast), "the Dutch coast: {coast}");
    }

    #[test]
    fn every_number_of_the_file_is_read() {
        for line in RINGS.lines().filter(|line| !line.starts_with('#')) {
            assert_eq!(ring(line).len() * 2, line.split(' ').count(), "{line}");
        }
    }
}
