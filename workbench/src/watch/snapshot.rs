//! Snapshots of a directory tree, and the changes since.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::layout::dir::{DEPTH_MAX, ENTRIES_MAX, SKIPPED};

/// The ends of files that may belong to codecs.
const ENDS: [&str; 5] = ["js", "json", "jsonl", "yaml", "yml"];

/// Time of the last change, inode and length of a file: editors that put a new file in place may keep the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    seconds: i64,
    nanoseconds: i64,
    file: u64,
    bytes: u64,
}

/// The files and directories of a tree. Symbolic links are not followed.
#[derive(Debug)]
pub(super) struct Snapshot {
    root: PathBuf,
    is_deep: bool,
    files: BTreeMap<PathBuf, Option<Stamp>>,
    dirs: BTreeMap<PathBuf, Option<Stamp>>,
}

impl Snapshot {
    /// Looks at `root`, and at all below it if `is_deep`.
    pub(super) fn take(root: &Path, is_deep: bool) -> Self {
        let mut snapshot = Self { root: root.to_owned(), is_deep, files: BTreeMap::new(), dirs: BTreeMap::new() };
        snapshot.add(root, if is_deep { DEPTH_MAX } else { 0 });
        snapshot
    }

    /// The files that are new, gone or changed since the last time.
    pub(super) fn changes(&mut self) -> BTreeSet<PathBuf> {
        // Files come and go only if a directory changes.
        if self.dirs.iter().any(|(dir, before)| stamp(dir) != *before) {
            let now = Self::take(&self.root, self.is_deep);
            let differs = |file: &&PathBuf| self.files.get(*file) != now.files.get(*file);
            let changed = self.files.keys().chain(now.files.keys()).filter(differs).cloned().collect();
            *self = now;
            return changed;
        }
        let mut changed = BTreeSet::new();
        for (file, before) in &mut self.files {
            let now = stamp(file);
            if now != *before {
                *before = now;
                changed.insert(file.clone());
            }
        }
        changed
    }

    fn add(&mut self, dir: &Path, depth: usize) {
        // A bare file name is in the directory without a name.
        let path = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        // Before the entries are read: what comes later changes it again.
        self.dirs.insert(path.to_owned(), stamp(path));
        let Ok(entries) = fs::read_dir(path) else { return };
        for entry in entries.flatten() {
            if self.files.len() + self.dirs.len() >= ENTRIES_MAX {
                return;
            }
            let (Ok(kind), name) = (entry.file_type(), entry.file_name()) else { continue };
            let own = dir.join(&name);
            let is_skipped = SKIPPED.iter().any(|skipped| name == *skipped);
            if kind.is_dir() && depth > 0 && !is_skipped {
                self.add(&own, depth - 1);
            } else if kind.is_file() && own.extension().is_some_and(|end| ENDS.iter().any(|known| end == *known)) {
                let stamp = stamp(&own);
                self.files.insert(own, stamp);
            }
        }
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::symlink_metadata(path).ok()?;
    let (seconds, nanoseconds) = (metadata.mtime(), metadata.mtime_nsec());
    Some(Stamp { seconds, nanoseconds, file: metadata.ino(), bytes: metadata.size() })
}
