//! The directory of history, and the right to change it.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use crate::{Error, directory::removed::Removals, tail::Tail};

/// The file that is locked while sealed files are changed.
pub(crate) const LOCK: &str = "lock";

/// The directory of history.
#[derive(Debug)]
pub(crate) struct Disk {
    root: PathBuf,
    /// None if history is off.
    pub(crate) tail: Option<Arc<Tail>>,
    /// Held for writing while records move from one place to another, so that readers see each in one of them.
    moving: RwLock<()>,
}

/// The right to change sealed files, which one process has at a time.
pub(crate) struct Change {
    _lock: File,
}

impl Disk {
    pub(crate) fn new(root: PathBuf, tail: Option<Arc<Tail>>) -> Self {
        Self { root, tail, moving: RwLock::default() }
    }

    /// Returns the parent of the directories of applications.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory of the tails of all processes.
    pub(crate) fn tail_dir(root: &Path) -> PathBuf {
        root.join("tail")
    }

    /// Returns the directory of removals.
    pub(crate) fn removed_dir(&self) -> PathBuf {
        self.root.join("removed")
    }

    pub(crate) fn removals(&self) -> Result<Removals, Error> {
        Removals::read(&self.removed_dir())
    }

    /// Keeps records where they are while sources are listed.
    pub(crate) fn still(&self) -> RwLockReadGuard<'_, ()> {
        self.moving.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody lists sources.
    pub(crate) fn moving(&self) -> RwLockWriteGuard<'_, ()> {
        self.moving.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other process changes sealed files.
    pub(crate) fn change(&self) -> Result<Change, Error> {
        fs::create_dir_all(&self.root).map_err(Error::file("create", &self.root))?;
        let path = self.root.join(LOCK);
        let lock = File::options().write(true).create(true).truncate(false).open(&path);
        let lock = lock.map_err(Error::file("open", &path))?;
        lock.lock().map_err(Error::file("lock", &path))?;
        Ok(Change { _lock: lock })
    }
}
