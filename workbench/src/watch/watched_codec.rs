//! Codecs that were read before, and files that are not valid.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::parent;
use crate::{codec::Codec, file::normal, layout::BadInput, report::CodecReport, text::place::Place};

/// A codec that was read before.
#[derive(Debug)]
pub(super) struct WatchedCodec {
    pub(super) id: String,
    /// The directory with its examples, or else its script.
    pub(super) home: PathBuf,
    /// Its script, and the files with its examples.
    pub(super) files: BTreeSet<PathBuf>,
    /// True if it failed when it last ran.
    pub(super) has_failed: bool,
    origin: Origin,
}

/// The file with the first example, and the script. Codecs may have their id in common, but hardly these too.
type Origin = (Option<PathBuf>, Option<PathBuf>);

fn origin<'a>(mut places: impl Iterator<Item = &'a Place>, script: Option<&Path>) -> Origin {
    (places.next().map(|place| normal(&place.file)), script.map(normal))
}

impl WatchedCodec {
    pub(super) fn of(codec: &Codec) -> Self {
        let places = || codec.examples.iter().filter_map(|example| example.place.as_ref());
        let of_examples = places().map(|place| place.file.as_path());
        let files: BTreeSet<PathBuf> = of_examples.chain(codec.script_file.as_deref()).map(normal).collect();
        let origin = origin(places(), codec.script_file.as_deref());
        let home = origin.0.as_ref().or(origin.1.as_ref()).map(|file| parent(file)).unwrap_or_default();
        Self { id: codec.id.clone(), home, files, has_failed: false, origin }
    }

    /// Returns true if it is the same codec, read another time.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.id == other.id && self.origin == other.origin
    }

    pub(super) fn is_of(&self, report: &CodecReport) -> bool {
        let places = report.examples.iter().filter_map(|example| example.place.as_ref());
        self.id == report.id && self.origin == origin(places, report.file.as_deref())
    }
}

/// Something that could not be read.
#[derive(Debug)]
pub(super) struct Standing {
    /// The file, unless it is about something else.
    pub(super) file: Option<PathBuf>,
    /// The directory of a tree in which it was found, or the file that is watched.
    pub(super) home: Option<PathBuf>,
    text: String,
}

impl Standing {
    pub(super) fn of(problem: &BadInput, home: Option<&Path>) -> Self {
        let file = problem.place().map(|(file, _)| normal(Path::new(file)));
        Self { file, home: home.map(normal), text: problem.to_string() }
    }

    /// The file, or else the description of the problem.
    pub(super) fn name(&self) -> String {
        self.file.as_ref().map_or_else(|| self.text.clone(), |file| file.display().to_string())
    }
}
