//! Reads codecs and their examples from the layouts in which they are written.

mod bad_input;
mod device_repository;
pub(crate) mod dir;
mod example;
pub(crate) mod lines;
mod listed;
mod milesight;
#[cfg(unix)]
pub(crate) mod named;
pub(crate) mod own;
mod script;
pub(crate) mod template;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

pub use self::bad_input::BadInput;
use self::{
    bad_input::MEMORY_BYTES_MAX,
    dir::{Dir, Tree},
};
use crate::{
    codec::{Codec, EXAMPLES_MAX, Example, memory_size::memory_bytes},
    file::normal,
};

/// Maximum number of problems that are told one by one.
const PROBLEMS_MAX: usize = 1000;

/// Codecs and problems that were found in files and directories.
#[derive(Debug)]
pub struct Found {
    /// The codecs, in the order of the files.
    pub codecs: Vec<Codec>,
    /// Files and lines that could not be read. They do not keep the rest from being read.
    pub problems: Vec<BadInput>,
    /// Only codecs whose id contains it are wanted.
    filter: Option<String>,
    /// In a tree, only problems of files whose path contains it are wanted.
    vendor: Option<String>,
    /// Memory that further codecs may take, in bytes.
    left: u64,
    /// Problems beyond those that are told.
    more: usize,
    /// Number of codecs whose id does not contain the filter.
    others: usize,
    /// Of each of the first problems, the directory of a tree that has it, or the path that was named.
    homes: Vec<PathBuf>,
    /// The scripts of all codecs that were read, also of those that the filter leaves out, as normal paths.
    claimed: BTreeSet<PathBuf>,
}

/// Finds the codecs that are described in some directories of a tree, given by the way from its root. Other directories
/// have examples of the scripts in `claimed`.
pub(crate) fn find_in(
    tree: Tree<'_>,
    dirs: &BTreeSet<PathBuf>,
    claimed: BTreeSet<PathBuf>,
    filter: Option<&str>,
) -> Found {
    let mut found = Found { claimed, ..Found::new(filter, MEMORY_BYTES_MAX) };
    let root = tree.root;
    let mut read_dirs = Vec::new();
    for below in dirs.iter().filter(|below| tree.files.is_dir(&root.join(below))) {
        let (dirs, problems) = tree.one(below);
        problems.into_iter().for_each(|problem| found.problem(problem));
        found.homes.resize(found.problems.len(), root.join(below));
        dirs.iter().for_each(|dir| read_dir_of_tree(dir, &mut found));
        read_dirs.push(below);
    }
    for below in read_dirs {
        tree.one(below).0.iter().for_each(|dir| read_alone(dir, &mut found));
    }
    found
}

/// Finds the codecs of a tree, with their examples, in any layout.
pub(crate) fn read_tree(tree: Tree<'_>, found: &mut Found) {
    let (dirs, problems) = tree.walk();
    found.vendor = found.filter.as_ref().and_then(|filter| filter.split('/').next()).map(str::to_owned);
    for problem in problems {
        // It is about a directory as a whole.
        let home = problem.place().map(|(file, _)| PathBuf::from(file)).unwrap_or_default();
        found.problem(problem);
        found.homes.resize(found.problems.len(), home);
    }
    dirs.iter().for_each(|dir| read_dir_of_tree(dir, found));
    // Examples may be in another directory than their script.
    dirs.iter().for_each(|dir| read_alone(dir, found));
    found.vendor = None;
}

/// Reads a directory, and keeps which one its problems are of.
fn read_dir_of_tree(dir: &Dir<'_>, found: &mut Found) {
    found.homes.resize(found.problems.len(), PathBuf::new());
    read_dir(dir, found);
    found.homes.resize(found.problems.len(), dir.root.join(&dir.below));
}

/// The same for its scripts without examples.
fn read_alone(dir: &Dir<'_>, found: &mut Found) {
    script::alone::read(dir, found);
    found.homes.resize(found.problems.len(), dir.root.join(&dir.below));
}

fn read_dir(dir: &Dir<'_>, found: &mut Found) {
    device_repository::read(dir, found);
    own::read(dir, found);
    listed::read_profiles(dir, found);
    listed::read_packages(dir, found);
    milesight::read(dir, found);
    lines::read_dir(dir, found);
}

/// Returns true if the name is that of a file that has examples, or names a script.
fn is_descriptor(name: &str) -> bool {
    Layout::of(name).is_some()
}

/// Layouts of files with examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Own,
    DeviceRepository,
    DeviceProfile,
    Package,
    Milesight,
    Lines,
}

impl Layout {
    /// The one that the name of a file tells.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            _ if own::is_own(name) => Some(Self::Own),
            _ if device_repository::is_yaml(name) => Some(Self::DeviceRepository),
            _ if listed::is_profile(name) => Some(Self::DeviceProfile),
            _ if listed::is_package(name) => Some(Self::Package),
            _ if milesight::is_milesight(name) => Some(Self::Milesight),
            _ if name.ends_with(".jsonl") => Some(Self::Lines),
            _ => None,
        }
    }
}

impl Found {
    /// Neither codecs nor problems.
    pub(crate) fn nothing() -> Self {
        Self::new(None, MEMORY_BYTES_MAX)
    }

    fn new(filter: Option<&str>, left: u64) -> Self {
        let filter = filter.map(str::to_owned);
        Self {
            codecs: Vec::new(),
            problems: Vec::new(),
            filter,
            vendor: None,
            left,
            more: 0,
            others: 0,
            homes: Vec::new(),
            claimed: BTreeSet::new(),
        }
    }

    /// Each problem with where it is from, as far as that is a path.
    pub(crate) fn problems_by_home(&self) -> impl Iterator<Item = (&BadInput, Option<&Path>)> {
        let homes = self.homes.iter().map(|home| Some(home.as_path())).chain(std::iter::repeat(None));
        self.problems.iter().zip(homes)
    }

    /// Tells how many problems are not told.
    pub(crate) fn count_more(&mut self) {
        if self.more > 0 {
            self.problems.push(BadInput::More(self.more));
        }
    }

    /// Adds a problem, up to a bound.
    fn problem(&mut self, problem: BadInput) {
        let is_of = |vendor: &String| problem.place().is_none_or(|(file, _)| file.contains(vendor));
        match self.problems.len() < PROBLEMS_MAX {
            _ if !self.vendor.as_ref().is_none_or(is_of) => {}
            true => self.problems.push(problem),
            false => self.more += problem.count(),
        }
    }

    /// Adds a codec whose script is a file.
    fn script(&mut self, dir: &Dir<'_>, id: &str, name: &str, examples: Vec<Example>) {
        match dir.script(name) {
            Ok(script) => self.codec(Codec { examples, ..Codec::new(id.to_owned(), script, Some(dir.path(name))) }),
            Err(problem) => self.problem(problem),
        }
    }

    fn codec(&mut self, codec: Codec) {
        self.claimed.extend(codec.script_file.as_deref().map(normal));
        if self.filter.as_ref().is_some_and(|filter| !codec.id.contains(filter)) {
            self.others += 1;
            return;
        }
        if codec.examples.len() > EXAMPLES_MAX {
            let place = codec.examples.first().and_then(|example| example.place.as_ref());
            let (file, line) = place
                .map_or_else(|| (codec.id.clone(), 1), |place| (place.file.display().to_string(), place.line as u64));
            return self.problem(BadInput::Line {
                file,
                line,
                reason: format!("it has more than {EXAMPLES_MAX} examples"),
            });
        }
        match self.left.checked_sub(memory_bytes(&codec)) {
            Some(left) => {
                self.left = left;
                self.codecs.push(codec);
            }
            None if self.left == 0 => {}
            None => {
                self.left = 0;
                self.problem(BadInput::TooLarge);
            }
        }
    }
}
