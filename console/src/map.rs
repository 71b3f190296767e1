//! A map of where an uplink was received: shapes in a picture, over coarse land. It needs no scripts, and no tiles, which
//! cover the land if the operator has set a server of them.

mod land;
mod tiles;

use std::{fmt::Write as _, iter::once};

use types::Metadata;

use self::{
    land::{Bounds, Point, projected},
    tiles::{Image, TILE_WIDTH, Tile, Tiles, covering},
};
use crate::settings::MapTiles;

/// The size of a picture, in units of its own.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 400.0;
/// Length of a degree of latitude.
const KM_PER_DEGREE: f64 = 111.32;
/// Width of a view of one position, and the least of one of several, in km.
const WIDTH_OF_ONE_KM: f64 = 400.0;
const WIDTH_MIN_KM: f64 = 4.0;
/// Width of the view of the surroundings, and how wide a map is that needs none, in km.
const OVERVIEW_WIDTH_KM: f64 = 5000.0;
const WIDE_KM: f64 = 1000.0;
/// Width of the widest view, which is as high as the projection.
const WIDEST_DEGREES: f64 = 360.0 * WIDTH / HEIGHT;
/// The part of a picture across which positions are spread.
const SPREAD: f64 = 0.75;
/// Maximum number of positions. The rest are counted.
const MARKS_MAX: usize = 50;
/// By how much a tile is larger than its place, so that no line is seen between two, in units of a picture.
const TILE_OVERLAP: f64 = 0.5;
const DEVICE: &str = "The device";
const UNNAMED: &str = "A gateway without a name";

/// The positions of an uplink's gateways and its device.
pub(crate) struct Map {
    pub(crate) marks: Vec<Mark>,
    /// Number of gateways whose positions are left out.
    pub(crate) left_out: usize,
    /// The path of the land.
    pub(crate) land: String,
    /// The tiles over the land, which remains where one does not come.
    pub(crate) tiles: Option<Tiles>,
    pub(crate) scale: Scale,
    /// The path of the land of the surroundings, in the middle of which the map is.
    pub(crate) overview: Option<String>,
}

/// A position, of one gateway or several, of the device, or of both.
pub(crate) struct Mark {
    names: Vec<String>,
    pub(crate) latitude: f32,
    pub(crate) longitude: f32,
    /// True if the device is there.
    pub(crate) is_device: bool,
    /// The place in the picture.
    pub(crate) x: String,
    pub(crate) y: String,
}

/// The bar that shows a distance, in the middle of the picture: elsewhere, the same distance has another length.
pub(crate) struct Scale {
    pub(crate) length: String,
    pub(crate) text: String,
}

/// A part of the world, as the picture shows it.
#[derive(Clone, Copy)]
struct View {
    middle: Point,
    /// Units of the picture in a degree of longitude.
    zoom: f64,
    km_per_degree: f64,
}

impl Map {
    /// A map of all whose position is known; none if there are none.
    pub(crate) fn of(metadata: &Metadata, server: Option<&MapTiles>) -> Option<Self> {
        let (mut marks, left_out) = marks(metadata);
        let first = f64::from(marks.first()?.longitude);
        // The way to each from the first one that does not go round the world.
        let turned = |longitude: f64| longitude - 360.0 * ((longitude - first) / 360.0).round();
        let place = |mark: &Mark| projected(mark.latitude.into(), turned(mark.longitude.into()));
        let places: Vec<_> = marks.iter().map(place).collect();
        let view = View::of(&places);
        for (mark, place) in marks.iter_mut().zip(&places) {
            let (x, y) = view.place(*place);
            (mark.x, mark.y) = (rounded(x), rounded(y));
        }
        let overview = (view.width_km() < WIDE_KM).then(|| view.zoomed_to(OVERVIEW_WIDTH_KM).land());
        let tiles = server.map(|server| view.tiles(server));
        Some(Self { marks, left_out, land: view.land(), tiles, scale: view.scale(), overview })
    }

    /// The size of a picture, as SVG has it.
    pub(crate) fn view_box(&self) -> String {
        format!("0 0 {WIDTH} {HEIGHT}")
    }
}

impl Mark {
    pub(crate) fn names(&self) -> String {
        self.names.join(", ")
    }
}

impl View {
    /// A view of all places.
    fn of(places: &[Point]) -> Self {
        let ends = |of: fn(&Point) -> f64| {
            let values = places.iter().map(of);
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)))
        };
        let (west, east) = ends(|place| place.0);
        let (south, north) = ends(|place| place.1);
        let middle = (west.midpoint(east), south.midpoint(north));
        let km_per_degree = KM_PER_DEGREE * middle.1.to_radians().sinh().atan().cos();
        let least = if places.len() == 1 { WIDTH_OF_ONE_KM } else { WIDTH_MIN_KM };
        let spread = (east - west).max((north - south) * WIDTH / HEIGHT) / SPREAD;
        Self { middle, zoom: 1.0, km_per_degree }.zoomed_to((spread * km_per_degree).max(least))
    }

    /// The same middle in a picture that is so wide.
    fn zoomed_to(self, km: f64) -> Self {
        Self { zoom: WIDTH / (km / self.km_per_degree).min(WIDEST_DEGREES), ..self }
    }

    fn width_km(&self) -> f64 {
        WIDTH / self.zoom * self.km_per_degree
    }

    fn place(&self, (east, north): Point) -> (f64, f64) {
        (WIDTH / 2.0 + (east - self.middle.0) * self.zoom, HEIGHT / 2.0 - (north - self.middle.1) * self.zoom)
    }

    fn bounds(&self) -> Bounds {
        let ((east, north), half) = (self.middle, (WIDTH / 2.0 / self.zoom, HEIGHT / 2.0 / self.zoom));
        Bounds { west: east - half.0, east: east + half.0, south: north - half.1, north: north + half.1 }
    }

    /// The tiles that cover it.
    fn tiles(&self, server: &MapTiles) -> Tiles {
        let image = |tile: Tile| {
            let (x, y) = self.place(tile.corner);
            let url = server.url.of(tile.level, tile.column, tile.row);
            let scale = format!("{:.4}", (tile.side * self.zoom + TILE_OVERLAP) / TILE_WIDTH);
            Image { url, x: rounded(x), y: rounded(y), scale }
        };
        let images = covering(self.bounds(), WIDTH).into_iter().map(image).collect();
        Tiles { images, attribution: server.attribution.clone(), origin: server.url.origin().to_owned() }
    }

    /// The path of the land in it.
    fn land(&self) -> String {
        let mut path = String::new();
        for ring in land::within(self.bounds()) {
            for (index, point) in ring.into_iter().enumerate() {
                let (x, y) = self.place(point);
                // Writing to a string cannot fail.
                _ = write!(path, "{}{} {}", if index == 0 { 'M' } else { 'L' }, rounded(x), rounded(y));
            }
            path.push('Z');
        }
        path
    }

    /// A bar of a round length, at most a quarter of the picture.
    fn scale(&self) -> Scale {
        let most = self.width_km() / 4.0;
        let power = 10_f64.powf(most.log10().floor());
        let km = [5.0, 2.0].into_iter().map(|factor| factor * power).find(|km| *km <= most).unwrap_or(power);
        let text = if km < 1.0 { format!("{:.0} m", km * 1000.0) } else { format!("{km:.0} km") };
        Scale { length: rounded(km / self.km_per_degree * self.zoom), text }
    }
}

/// The positions that are known, and how many more there are. Those of the same place are one.
fn marks(metadata: &Metadata) -> (Vec<Mark>, usize) {
    let gateways = metadata.gateways.iter().map(|gateway| {
        let name = if gateway.gtw_id.is_empty() { UNNAMED } else { gateway.gtw_id.as_str() };
        (false, name, (gateway.latitude, gateway.longitude))
    });
    let device = (true, DEVICE, (metadata.latitude, metadata.longitude));
    let (mut marks, mut left_out) = (Vec::<Mark>::new(), 0);
    for (is_device, name, (latitude, longitude)) in once(device).chain(gateways) {
        if !is_known(latitude, longitude) {
            continue;
        }
        let is_full = marks.len() == MARKS_MAX;
        match marks.iter_mut().find(|mark| (mark.latitude, mark.longitude) == (latitude, longitude)) {
            // A gateway with two antennas is there twice.
            Some(mark) if mark.names.iter().any(|known| known == name) => {}
            Some(mark) => mark.names.push(name.to_owned()),
            None if is_full => left_out += 1,
            None => {
                let (names, x, y) = (vec![name.to_owned()], String::new(), String::new());
                marks.push(Mark { names, latitude, longitude, is_device, x, y });
            }
        }
    }
    (marks, left_out)
}

/// Networks leave out what they do not know, and then it is zero.
fn is_known(latitude: f32, longitude: f32) -> bool {
    let is_place = (-90.0..=90.0).contains(&latitude) && (-180.0..=180.0).contains(&longitude);
    is_place && (latitude != 0.0 || longitude != 0.0)
}

fn rounded(length: f64) -> String {
    format!("{length:.1}")
}

#[cfg(test)]
mod tests {
    use types::GatewayMetadata;

    use super::*;

    fn metadata(positions: &[(f32, f32)]) -> Metadata {
        let gateway = |(index, &(latitude, longitude))| GatewayMetadata {
            gtw_id: format!("gateway-{index}"),
            latitude,
            longitude,
            ..GatewayMetadata::default()
        };
        Metadata { gateways: positions.iter().enumerate().map(gateway).collect(), ..Metadata::default() }
    }

    fn number(text: &str) -> f64 {
        text.parse().unwrap()
    }

    /// The distance of the first two marks by the scale, in km.
    fn distance(map: &Map) -> f64 {
        let [one, other] = [&map.marks[0], &map.marks[1]];
        let (east, north) = (number(&one.x) - number(&other.x), number(&one.y) - number(&other.y));
        let (bar, unit) = map.scale.text.split_once(' ').unwrap();
        let km = number(bar) / if unit == "m" { 1000.0 } else { 1.0 };
        east.hypot(north) / number(&map.scale.length) * km
    }

    #[test]
    fn distances_are_those_of_the_scale() {
        // Potsdam and Berlin; two roofs; Suva and Apia, on both sides of 180°.
        for (positions, expected, is_wide) in [
            ([(52.4, 13.066), (52.52, 13.405)], 26.6, false),
            ([(52.5, 13.4), (52.505, 13.41)], 0.877, false),
            ([(-18.14, 178.44), (-13.83, -171.76)], 1152.0, true),
        ] {
            let map = Map::of(&metadata(&positions), None).unwrap();
            let found = distance(&map);
            assert!((found - expected).abs() < expected * 0.02, "{found} km, and not {expected} km");
            assert_eq!(map.overview.is_none(), is_wide, "{positions:?}");
            for mark in &map.marks {
                assert!((60.0..=540.0).contains(&number(&mark.x)) && (40.0..=360.0).contains(&number(&mark.y)));
            }
            assert!(number(&map.scale.length) <= WIDTH / 4.0);
        }
    }

    #[test]
    fn a_single_position_is_in_the_middle_of_a_part_of_the_world() {
        let map = Map::of(&metadata(&[(52.0, 4.5)]), None).unwrap();
        assert_eq!((map.marks[0].x.as_str(), map.marks[0].y.as_str()), ("300.0", "200.0"));
        assert!(map.land.starts_with('M') && map.land.ends_with('Z') && !map.land.contains("NaN"), "{}", map.land);
        assert_eq!(map.scale.text, "100 km");
    }

    #[test]
    fn what_is_not_known_is_left_out_and_the_same_place_is_one() {
        assert!(Map::of(&metadata(&[(0.0, 0.0), (f32::NAN, 1.0), (91.0, 1.0)]), None).is_none());
        let mut metadata = metadata(&[(1.0, 2.0), (1.0, 2.0), (0.0, 0.0)]);
        metadata.gateways.push(metadata.gateways[0].clone());
        (metadata.latitude, metadata.longitude) = (1.0, 2.0);
        let map = Map::of(&metadata, None).unwrap();
        assert_eq!((map.marks.len(), map.marks[0].names()), (1, "The device, gateway-0, gateway-1".to_owned()));
        assert!(map.marks[0].is_device);
    }

    #[test]
    fn the_whole_world_and_the_poles_have_a_map() {
        for positions in [[(60.0, -170.0), (-60.0, 0.0)], [(90.0, 0.5), (-90.0, 179.0)], [(89.0, 10.0), (89.5, 50.0)]] {
            let map = Map::of(&metadata(&positions), None).unwrap();
            for mark in &map.marks {
                assert!((0.0..=WIDTH).contains(&number(&mark.x)) && (0.0..=HEIGHT).contains(&number(&mark.y)));
            }
            assert!(!map.land.contains("NaN") && !map.land.contains("inf"));
        }
    }

    #[test]
    fn tiles_lie_where_the_marks_are() {
        let server = MapTiles {
            url: "https://tile.example.com/{z}/{x}/{y}.png".parse().unwrap(),
            attribution: "© Somebody".to_owned(),
        };
        let (potsdam, berlin) = ((52.4, 13.066), (52.52, 13.405));
        assert!(Map::of(&metadata(&[potsdam, berlin]), None).unwrap().tiles.is_none());
        let map = Map::of(&metadata(&[potsdam, berlin]), Some(&server)).unwrap();
        let tiles = map.tiles.unwrap();
        assert_eq!((tiles.origin.as_str(), tiles.attribution.as_str()), ("https://tile.example.com", "© Somebody"));
        // The tiles of both places at level 11, as the wiki of OpenStreetMap computes their numbers.
        for (mark, url) in map.marks.iter().zip(["/11/1098/672.png", "/11/1100/671.png"]) {
            let image = tiles.images.iter().find(|image| image.url.ends_with(url));
            let image = image
                .unwrap_or_else(|| panic!("{:?}", tiles.images.iter().map(|image| &image.url).collect::<Vec<_>>()));
            for (mark, corner) in [(&mark.x, &image.x), (&mark.y, &image.y)] {
                assert!(
                    (0.0..=number(&image.scale) * TILE_WIDTH).contains(&(number(mark) - number(corner))),
                    "{mark}, {corner}"
                );
            }
        }
    }
}
