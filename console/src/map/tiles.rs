//! The tiles that cover a part of the world, as servers of tiles number them.

use std::ops::Range;

use super::land::{Bounds, Point};

/// Width of a tile that is as sharp as it was drawn, in units of a picture.
pub(super) const TILE_WIDTH: f64 = 256.0;
/// Width and height of the world that servers have tiles of, as the projection of Mercator stretches it, in degrees.
const WORLD: f64 = 360.0;
/// The level of the smallest tiles. The narrowest map needs no smaller ones.
const LEVEL_MAX: f64 = 15.0;

/// The tiles of a picture.
pub(crate) struct Tiles {
    pub(crate) images: Vec<Image>,
    /// The attribution that their licence asks for.
    pub(crate) attribution: String,
    /// The only origin that they come from.
    pub(crate) origin: String,
}

/// A tile in a picture: a square.
pub(crate) struct Image {
    pub(crate) url: String,
    /// The corner in the north-west.
    pub(crate) x: String,
    pub(crate) y: String,
    /// By how much it is enlarged.
    pub(crate) scale: String,
}

/// A tile of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile {
    pub(super) level: u32,
    pub(super) column: u32,
    pub(super) row: u32,
    /// The corner in the north-west.
    pub(super) corner: Point,
    /// Width and height in degrees.
    pub(super) side: f64,
}

/// The tiles that cover bounds, which are so wide in a picture: at most 20 in one that is 600 wide and 400 high. Beyond
/// the meridian of 180°, the world begins again; beyond the poles is nothing.
pub(super) fn covering(bounds: Bounds, width: f64) -> Vec<Tile> {
    let wanted = WORLD / (bounds.east - bounds.west) * width / TILE_WIDTH;
    let level = wanted.log2().round().clamp(0.0, LEVEL_MAX);
    let (side, count) = (WORLD / level.exp2(), level.exp2() as i64);
    let columns = steps(bounds.west, bounds.east, side);
    let rows = steps(-bounds.north, -bounds.south, side).filter(|row| (0..count).contains(row));
    let tile = |(row, column): (i64, i64)| Tile {
        level: level as u32,
        column: column.rem_euclid(count) as u32,
        row: row as u32,
        corner: (column as f64 * side - WORLD / 2.0, WORLD / 2.0 - row as f64 * side),
        side,
    };
    rows.flat_map(|row| columns.clone().map(move |column| (row, column))).map(tile).collect()
}

/// The numbers of the steps from one degree to another, of which the first begins at -180°.
fn steps(from: f64, to: f64, side: f64) -> Range<i64> {
    let step = |degrees: f64| (degrees + WORLD / 2.0) / side;
    step(from).floor() as i64..step(to).ceil() as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::land::projected;

    /// Bounds of that width, in a picture of 600 by 400, around a place.
    fn around((latitude, longitude): (f64, f64), degrees: f64) -> Bounds {
        let (east, north) = projected(latitude, longitude);
        let (half, third) = (degrees / 2.0, degrees / 3.0);
        Bounds { west: east - half, east: east + half, south: north - third, north: north + third }
    }

    #[test]
    fn a_place_is_on_the_tile_that_servers_have_of_it() {
        // As https://wiki.openstreetmap.org/wiki/Slippy_map_tilenames computes them.
        for (place, degrees, expected) in [
            ((52.52, 13.405), 600.0 / 256.0 * 360.0 / 1024.0, (10_u32, 550_u32, 335_u32)),
            ((-33.86, 151.21), 600.0 / 256.0 * 360.0 / 4096.0, (12, 3768, 2457)),
            ((0.0, -179.9), 600.0 / 256.0 * 360.0 / 8.0, (3, 0, 4)),
        ] {
            let (east, north) = projected(place.0, place.1);
            let is_on = |tile: &&Tile| {
                let (west, top) = tile.corner;
                (west..west + tile.side).contains(&east) && north <= top && north > top - tile.side
            };
            let tiles = covering(around(place, degrees), 600.0);
            let found: Vec<_> = tiles.iter().filter(is_on).map(|tile| (tile.level, tile.column, tile.row)).collect();
            assert_eq!(found, [expected], "{place:?}");
        }
    }

    #[test]
    fn tiles_cover_every_picture_and_are_few() {
        for place in [(0.0, 0.0), (52.52, 13.405), (-16.5, 179.99), (85.0, -180.0), (-60.0, 200.0)] {
            for degrees in [0.036, 0.05, 0.07, 0.1, 1.0, 10.0, 100.0, 359.0, 540.0] {
                let bounds = around(place, degrees);
                let tiles = covering(bounds, 600.0);
                assert!((1..=20).contains(&tiles.len()), "{place:?}, {degrees}°: {}", tiles.len());
                let first = tiles.first().unwrap();
                assert!(first.level <= 15 && tiles.iter().all(|tile| tile.column < 1 << first.level));
                assert!(tiles.iter().all(|tile| tile.row < 1 << first.level));
                let ends = |of: fn(&Tile) -> f64| tiles.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
                assert!(
                    -ends(|tile| -tile.corner.0) <= bounds.west
                        && ends(|tile| tile.corner.0 + tile.side) >= bounds.east
                );
                assert!(ends(|tile| tile.corner.1) >= bounds.north.min(180.0));
                assert!(-ends(|tile| tile.side - tile.corner.1) <= bounds.south.max(-180.0));
            }
        }
    }
}
