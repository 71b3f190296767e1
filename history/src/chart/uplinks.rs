//! Numbers of some uplinks, before they are put together with those of others.

use std::{collections::HashMap, mem};

use crate::{RecordId, chart::numbers::Wanted};

/// Number of uplinks, and of their numbers, that are put together at once: few enough that no thread waits for long.
const UPLINKS_MAX: usize = 2048;
const NUMBERS_MAX: usize = 8192;
/// Number of paths that are kept for the next uplinks.
const PATHS_MAX: usize = 64;

/// Uplinks with their numbers, whose paths are told by their places.
#[derive(Debug, Default)]
pub(super) struct Uplinks {
    paths: HashMap<String, usize>,
    /// Each with the end of its numbers.
    ids: Vec<(RecordId, usize)>,
    numbers: Vec<(usize, f64)>,
}

impl Uplinks {
    /// Adds an uplink with the numbers that are wanted of its result. One that is not JSON has none.
    pub(super) fn add(&mut self, id: RecordId, result: &str, wanted: &Wanted) {
        let Self { paths, ids, numbers } = self;
        let before = numbers.len();
        let is_json = wanted.find(result, |path, number| {
            let place = paths.get(path).copied().unwrap_or_else(|| {
                let place = paths.len();
                paths.insert(path.to_owned(), place);
                place
            });
            numbers.push((place, number));
        });
        if !is_json {
            numbers.truncate(before);
        }
        ids.push((id, numbers.len()));
    }

    /// Adds an uplink without numbers.
    pub(super) fn add_empty(&mut self, id: RecordId) {
        self.ids.push((id, self.numbers.len()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.ids.len() >= UPLINKS_MAX || self.numbers.len() >= NUMBERS_MAX
    }

    /// The paths with their places.
    pub(super) fn paths(&self) -> impl Iterator<Item = (&str, usize)> {
        self.paths.iter().map(|(path, place)| (path.as_str(), *place))
    }

    /// Each with its numbers, and the places of their paths.
    pub(super) fn each(&self) -> impl Iterator<Item = (RecordId, &[(usize, f64)])> {
        let mut end = 0;
        self.ids.iter().map(move |(id, next_end)| {
            let start = mem::replace(&mut end, *next_end);
            (*id, self.numbers.get(start..*next_end).unwrap_or_default())
        })
    }

    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.numbers.clear();
        if self.paths.len() > PATHS_MAX {
            self.paths.clear();
        }
    }
}
