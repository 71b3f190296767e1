//! Finds codecs to run again, because their script or their examples were saved.

mod snapshot;
mod watched_codec;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use runtime::Engine;

use self::{
    snapshot::Snapshot,
    watched_codec::{Standing, WatchedCodec},
};
use crate::{
    file::{disk::Disk, normal},
    layout::{Found, dir::Tree, find_in, named::find},
    report::CodecReport,
};

/// Files and directories that are watched, by looking at them again: that works on every file system, and whether an
/// editor writes a file or puts another in its place.
#[derive(Debug)]
pub struct Watch {
    paths: Vec<Watched>,
    filter: Option<String>,
    known: Vec<WatchedCodec>,
    /// Problems of files that could not be read, until they are read again.
    standing: Vec<Standing>,
}

#[derive(Debug)]
struct Watched {
    path: PathBuf,
    is_dir: bool,
    snapshot: Snapshot,
    /// Files that have changed since they were last read.
    changed: BTreeSet<PathBuf>,
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
        let known = found.codecs.iter().map(WatchedCodec::of).collect();
        let mut watch = Self { paths: paths_watched, filter: filter.map(str::to_owned), known, standing: Vec::new() };
        watch.keep_problems(&found);
        (watch, found)
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
        // What is about no file is told again if it is still so.
        self.standing.retain(|problem| problem.file.is_some());
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

    /// Keeps whether a codec that was read has failed.
    pub fn ran(&mut self, report: &CodecReport) {
        let same = self.known.iter_mut().filter(|known| known.is_of(report));
        same.for_each(|known| known.has_failed |= report.has_failed());
    }

    /// The ids of codecs that failed when they last ran, in order. Several may have the same.
    pub fn failing(&self) -> Vec<&str> {
        let failing = self.known.iter().filter(|known| known.has_failed);
        let mut ids: Vec<&str> = failing.map(|known| known.id.as_str()).collect();
        ids.sort_unstable();
        ids
    }

    /// The files that could not be read when they were last tried, in order.
    pub fn not_valid(&self) -> BTreeSet<String> {
        self.standing.iter().map(Standing::name).collect()
    }

    fn keep_problems(&mut self, found: &Found) {
        self.standing.extend(found.problems_by_home().map(|(problem, home)| Standing::of(problem, home)));
    }

    fn read_path(&mut self, index: usize, changed: &BTreeSet<PathBuf>, engine: &Arc<Engine>) -> Found {
        let (homes, mut found) = self.find_again(index, changed, engine);
        let mut now: Vec<WatchedCodec> = found.codecs.iter().map(WatchedCodec::of).collect();
        // It names the script of the examples beside it.
        let packages = changed.iter().filter(|file| file.ends_with("package.json"));
        let packages: BTreeSet<PathBuf> = packages.map(|file| parent(file)).collect();
        let is_due: Vec<bool> = now.iter().map(|codec| self.is_due(codec, changed, &packages)).collect();
        for (codec, _) in now.iter_mut().zip(&is_due).filter(|(_, is_due)| !**is_due) {
            codec.has_failed = self.known.iter().any(|known| known.has_failed && known.is_same(codec));
        }
        self.known.retain(|known| !homes.contains(&known.home));
        self.known.extend(now);
        let Watched { path, is_dir, .. } = &self.paths[index];
        let file = normal(path);
        let is_read_again = |home: &PathBuf| if *is_dir { homes.contains(home) } else { *home == file };
        self.standing.retain(|problem| !problem.home.as_ref().is_some_and(is_read_again));
        self.keep_problems(&found);
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
        // A script that was missing is there now.
        let is_about = |file: &PathBuf| changed.contains(file);
        let named = self.standing.iter().filter(|problem| problem.file.as_ref().is_some_and(is_about));
        homes.extend(named.filter_map(|problem| problem.home.clone()));
        if !is_dir {
            return (homes, find(std::slice::from_ref(path), filter, engine));
        }
        let root = normal(path);
        homes.retain(|home| home.starts_with(&root) || root.as_os_str().is_empty());
        let below = homes.iter().filter_map(|home| Some(home.strip_prefix(&root).ok()?.to_owned())).collect();
        let elsewhere = self.known.iter().filter(|known| !homes.contains(&known.home));
        let claimed = elsewhere.flat_map(|known| &known.files).cloned().collect();
        let found = find_in(Tree { files: &Disk, root: path, engine }, &below, claimed, filter);
        (homes, found)
    }

    fn is_due(&self, codec: &WatchedCodec, changed: &BTreeSet<PathBuf>, packages: &BTreeSet<PathBuf>) -> bool {
        let is_new = !self.known.iter().any(|known| known.is_same(codec));
        is_new || !codec.files.is_disjoint(changed) || packages.contains(&codec.home)
    }
}

/// The directory of a file; that of a bare name is empty.
fn parent(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}
