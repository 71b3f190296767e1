//! Finds out which codecs are to be run again, because their script or their examples were saved.

mod snapshot;

use std::{
    collections::BTreeSet,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use runtime::Engine;

use self::snapshot::Snapshot;
use crate::{
    codec::Codec,
    layout::{Found, find, find_in},
};

/// Files and directories that are watched, by looking at them again: that works on every file system, and whether an
/// editor writes a file or puts another in its place.
#[derive(Debug)]
pub struct Watch {
    paths: Vec<Watched>,
    filter: Option<String>,
    known: Vec<Known>,
}

#[derive(Debug)]
struct Watched {
    path: PathBuf,
    is_dir: bool,
    snapshot: Snapshot,
    /// What has changed since it was last read.
    changed: BTreeSet<PathBuf>,
}

/// A codec that was read before.
#[derive(Debug)]
struct Known {
    id: String,
    /// The directory with its examples, or else its script.
    home: PathBuf,
    /// Its script, and the files with its examples.
    files: BTreeSet<PathBuf>,
}

impl Watch {
    /// Reads all codecs of `paths`, as [`find`] does, and watches them from now on.
    pub fn start(paths: &[PathBuf], filter: Option<&str>, engine: &Arc<Engine>) -> (Self, Found) {
        let watched = paths.iter().map(|path| {
            let is_dir = path.is_dir();
            let dir = if is_dir { path.clone() } else { parent(path) };
            Watched { path: path.clone(), is_dir, snapshot: Snapshot::take(&dir, is_dir), changed: BTreeSet::new() }
        });
        // Whatever changes while they are read is found afterwards.
        let paths_watched = watched.collect();
        let found = find(paths, filter, engine);
        let known = found.codecs.iter().map(Known::of).collect();
        (Self { paths: paths_watched, filter: filter.map(str::to_owned), known }, found)
    }

    /// Looks for changes; true if there are some since the last time.
    pub fn has_changed(&mut self) -> bool {
        let mut has_changed = false;
        for watched in &mut self.paths {
            let changed = watched.snapshot.changes();
            has_changed |= !changed.is_empty();
            watched.changed.extend(changed.iter().map(|file| normal(file)));
        }
        has_changed
    }

    /// Reads what has changed. Codecs whose files are the same are not among what is found.
    pub fn read(&mut self, engine: &Arc<Engine>) -> Found {
        let mut all = Found::nothing();
        for index in 0..self.paths.len() {
            let changed = std::mem::take(&mut self.paths[index].changed);
            if changed.is_empty() {
                continue;
            }
            let found = self.read_path(index, &changed, engine);
            all.problems.extend(found.problems);
            all.codecs.extend(found.codecs);
        }
        all
    }

    /// Whether there is a codec of this id.
    pub fn knows(&self, id: &str) -> bool {
        self.known.iter().any(|known| known.id == id)
    }

    fn read_path(&mut self, index: usize, changed: &BTreeSet<PathBuf>, engine: &Arc<Engine>) -> Found {
        let (homes, mut found) = self.find_again(index, changed, engine);
        let now: Vec<Known> = found.codecs.iter().map(Known::of).collect();
        // It names the script of the examples beside it.
        let packages = changed.iter().filter(|file| file.ends_with("package.json"));
        let packages: BTreeSet<PathBuf> = packages.map(|file| parent(file)).collect();
        let is_due: Vec<bool> = now.iter().map(|codec| self.is_due(codec, changed, &packages)).collect();
        self.known.retain(|known| !homes.contains(&known.home));
        self.known.extend(now);
        let mut due = is_due.into_iter();
        found.codecs.retain(|_| due.next().unwrap_or(true));
        found
    }

    /// Reads the directories in which something has changed, or that have examples of a script that has.
    fn find_again(
        &self,
        index: usize,
        changed: &BTreeSet<PathBuf>,
        engine: &Arc<Engine>,
    ) -> (BTreeSet<PathBuf>, Found) {
        let Watched { path, is_dir, .. } = &self.paths[index];
        let filter = self.filter.as_deref();
        let affected = self.known.iter().filter(|known| !known.files.is_disjoint(changed));
        let mut homes: BTreeSet<PathBuf> = changed.iter().map(|file| parent(file)).collect();
        homes.extend(affected.map(|known| known.home.clone()));
        if !is_dir {
            return (homes, find(std::slice::from_ref(path), filter, engine));
        }
        let root = normal(path);
        homes.retain(|home| home.starts_with(&root) || root.as_os_str().is_empty());
        let below = homes.iter().filter_map(|home| Some(home.strip_prefix(&root).ok()?.to_owned())).collect();
        let found = find_in(path, &below, filter, engine);
        (homes, found)
    }

    fn is_due(&self, codec: &Known, changed: &BTreeSet<PathBuf>, packages: &BTreeSet<PathBuf>) -> bool {
        let is_new = !self.known.iter().any(|known| known.id == codec.id && known.home == codec.home);
        is_new || !codec.files.is_disjoint(changed) || packages.contains(&codec.home)
    }
}

impl Known {
    fn of(codec: &Codec) -> Self {
        let of_examples = codec.examples.iter().filter_map(|example| Some(example.place.as_ref()?.file.as_path()));
        let files: BTreeSet<PathBuf> = of_examples.chain(codec.script_file.as_deref()).map(normal).collect();
        let first = codec.examples.iter().find_map(|example| Some(example.place.as_ref()?.file.as_path()));
        let home = first.or(codec.script_file.as_deref()).map(|file| parent(&normal(file))).unwrap_or_default();
        Self { id: codec.id.clone(), home, files }
    }
}

/// The directory of a file; that of a bare name is empty.
fn parent(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

/// A path without `.` and `..` in it, so that the same file has one path. Links are not followed anywhere.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}
