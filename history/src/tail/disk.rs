//! The directory of history, and the right to change it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{
    Error,
    directory::{
        Change,
        removed::{self, Removal, Removals},
    },
    tail::Tail,
};

/// The directory of history.
#[derive(Debug)]
pub(crate) struct Disk {
    root: PathBuf,
    /// None if history is off.
    pub(crate) tail: Option<Arc<Tail>>,
    /// Held for writing while records move from one place to another, so that readers see each in one of them.
    moving: RwLock<()>,
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

    /// Hides what is removed, until the next look at all files deletes it. Returns false if that has been done before.
    pub(crate) fn hide(&self, removal: &Removal) -> Result<bool, Error> {
        let change = self.change()?;
        if self.removals()?.know(removal) {
            return Ok(false);
        }
        removed::begin(&change, &self.removed_dir(), removal)?;
        removed::write(&change, &self.removed_dir(), removal)?;
        Ok(true)
    }

    /// Keeps records where they are while sources are listed.
    pub(crate) fn still(&self) -> RwLockReadGuard<'_, ()> {
        self.moving.read()
    }

    /// Waits until nobody lists sources.
    pub(crate) fn moving(&self) -> RwLockWriteGuard<'_, ()> {
        self.moving.write()
    }

    /// Waits until no other process changes sealed files.
    pub(crate) fn change(&self) -> Result<Change, Error> {
        Change::take(&self.root)
    }
}
