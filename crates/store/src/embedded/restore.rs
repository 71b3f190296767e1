//! Writes a file that replaces the one of a store, in one step.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use redb::{Database, WriteTransaction};

use super::{
    open::{self, FORMAT, give_name},
    tables::{self, Tables},
};
use crate::{Error, StoredEntry, Version, clock::steadiness::CommitTime};

/// A store that is written beside the one that it replaces, which nothing else can open meanwhile.
pub struct Restoring {
    path: PathBuf,
    /// The file to which it is written; `None` when it is complete.
    unfinished: Option<PathBuf>,
    // Before the database, in the order of dropping.
    transaction: Option<WriteTransaction>,
    _database: Database,
    /// The store that is replaced, locked.
    replaced: Option<File>,
}

impl Restoring {
    /// Begins; [`Error::Locked`] when another process has the store at `path` open.
    pub fn start(path: &Path) -> Result<Self, Error> {
        let replaced = lock(path)?;
        let unfinished = path.with_extension("restoring");
        let database = open::empty(&unfinished, path)?;
        let transaction = database.begin_write().map_err(failed)?;
        let (path, unfinished) = (path.to_owned(), Some(unfinished));
        Ok(Self { path, unfinished, transaction: Some(transaction), _database: database, replaced })
    }

    /// Returns true if there is a store that is replaced.
    pub fn replaces(&self) -> bool {
        self.replaced.is_some()
    }

    /// Adds entries. Blocks.
    pub fn add(&self, entries: &[StoredEntry]) -> Result<(), Error> {
        let Some(transaction) = &self.transaction else { return Ok(()) };
        let mut tables = Tables::open(transaction, CommitTime::steady(0)).map_err(failed)?;
        entries.iter().try_for_each(|entry| tables.restore(entry)).map_err(failed)
    }

    /// Replaces the store, which gets the name `keep_as`; without a store there is nothing to keep. Blocks.
    pub fn finish(mut self, last_version: Version, keep_as: &Path) -> Result<(), Error> {
        if let Some(transaction) = self.transaction.take() {
            write_meta(&transaction, last_version).map_err(failed)?;
            transaction.commit().map_err(failed)?;
        }
        let Some(unfinished) = &self.unfinished else { return Ok(()) };
        let unwritable = |source| Error::Unwritable { path: self.path.clone(), source };
        if self.replaced.is_some() {
            keep(&self.path, keep_as).map_err(unwritable)?;
            fs::rename(unfinished, &self.path).and_then(|()| open::sync_directory(&self.path)).map_err(unwritable)?;
        } else {
            // A server that was started meanwhile may have created a store.
            give_name(unfinished, &self.path).map_err(unwritable)?;
        }
        self.unfinished = None;
        Ok(())
    }
}

impl Drop for Restoring {
    fn drop(&mut self) {
        if let Some(unfinished) = &self.unfinished {
            // It is overwritten next time.
            _ = fs::remove_file(unfinished);
        }
    }
}

/// Locks the file at `path` as an open store does; `None` if there is none. A damaged store can be locked, too.
fn lock(path: &Path) -> Result<Option<File>, Error> {
    match File::open(path) {
        Ok(file) => match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(_) => Err(Error::Locked { path: path.to_owned() }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Unwritable { path: path.to_owned(), source }),
    }
}

/// Gives the file a second name, so that it is never without its first one.
fn keep(path: &Path, keep_as: &Path) -> io::Result<()> {
    match fs::hard_link(path, keep_as) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            // Not every file system has hard links.
            fs::copy(path, keep_as).and_then(|_| File::open(keep_as)?.sync_all())
        }
        result => result,
    }
}

fn write_meta(transaction: &WriteTransaction, last_version: Version) -> Result<(), redb::Error> {
    tables::write_meta(&mut transaction.open_table(tables::META)?, FORMAT, last_version)?;
    Tables::open(transaction, CommitTime::steady(0))?.correct_derived().map(drop)
}

fn failed(error: impl Into<redb::Error>) -> Error {
    Error::unavailable("write the restored store", error.into())
}
