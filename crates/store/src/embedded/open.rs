//! Opens the database file and checks its format.

use std::{
    fs::{File, OpenOptions},
    io,
    ops::Deref,
    path::Path,
};

use redb::{Database, DatabaseError, ReadableDatabase, StorageBackend, StorageError, backends::FileBackend};

use tokio::sync::watch;

use super::{disk::AllocatedFile, tables};
use crate::{Error, UnixMillis, clock::steadiness::CommitTime};

/// The format that this version writes, and the newest that it reads.
pub(super) const FORMAT: u64 = 1;
const CACHE_BYTES: usize = 64 << 20;

/// A database that tells when it is closed.
pub(super) struct OpenDatabase {
    database: Database,
    // Dropped after the database, in the order of declaration.
    closed: watch::Sender<()>,
}

impl OpenDatabase {
    pub(super) fn new(database: Database) -> Self {
        Self { database, closed: watch::Sender::new(()) }
    }

    /// Waits until the last user of the database has dropped it, and the file is free.
    pub(super) fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut open = self.closed.subscribe();
        async move { while open.changed().await.is_ok() {} }
    }
}

impl Deref for OpenDatabase {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.database
    }
}

/// Opens the database in a file, or creates it; fails when another process has it open.
///
/// A new file gets its name when it is complete, so an empty one has lost its contents.
pub(super) fn file(path: &Path, now: UnixMillis) -> Result<Database, Error> {
    let unwritable = |source| Error::Unwritable { path: path.to_owned(), source };
    if !path.try_exists().map_err(unwritable)? {
        return create(path, now);
    }
    let file = open(path).map_err(unwritable)?;
    if file.metadata().map_err(unwritable)?.len() == 0 {
        return Err(Error::Corrupt {
            what: format!("the file {}", path.display()),
            source: Some("it is empty".into()),
        });
    }
    database(file, path)
}

/// Creates the database under another name, which it loses once it is complete.
fn create(path: &Path, now: UnixMillis) -> Result<Database, Error> {
    let unwritable = |source| Error::Unwritable { path: path.to_owned(), source };
    let new = path.with_extension("new");
    let database = empty(&new, path)?;
    prepare(&database, now)?;
    give_name(&new, path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::Locked { path: path.to_owned() },
        _ => unwritable(error),
    })?;
    Ok(database)
}

/// Opens an empty file that will be the one at `path`.
pub(super) fn empty(new: &Path, path: &Path) -> Result<Database, Error> {
    let unwritable = |source| Error::Unwritable { path: path.to_owned(), source };
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).map_err(unwritable)?;
    }
    let file = open(new).map_err(unwritable)?;
    file.try_lock().map_err(|_| Error::Locked { path: path.to_owned() })?;
    // A process that was killed may have left a part.
    file.set_len(0).map_err(unwritable)?;
    file.unlock().map_err(unwritable)?;
    database(file, path)
}

/// Renames a file for good, but never over another one, which a second process may have created meanwhile.
pub(super) fn give_name(new: &Path, path: &Path) -> io::Result<()> {
    match std::fs::hard_link(new, path) {
        Ok(()) => std::fs::remove_file(new)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
        // Not every file system has hard links.
        Err(_) => std::fs::rename(new, path)?,
    }
    sync_directory(path)
}

/// Makes the names in the directory of a file durable.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => File::open(dir)?.sync_all(),
        _ => Ok(()),
    }
}

fn database(file: File, path: &Path) -> Result<Database, Error> {
    let failed = |error: DatabaseError| match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            Error::Locked { path: path.to_owned() }
        }
        DatabaseError::Storage(StorageError::Io(source))
            if matches!(source.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
        {
            Error::Corrupt { what: format!("the file {}", path.display()), source: Some(source.into()) }
        }
        DatabaseError::Storage(StorageError::Io(source)) => Error::Unwritable { path: path.to_owned(), source },
        other => Error::Corrupt { what: format!("the file {}", path.display()), source: Some(other.into()) },
    };
    let unwritable = |source| Error::Unwritable { path: path.to_owned(), source };
    let same = file.try_clone().map_err(unwritable)?;
    let backend = AllocatedFile::new(same, FileBackend::new(file).map_err(&failed)?);
    Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(backend).map_err(failed)
}

/// Opens the database on any storage.
pub(super) fn backend(backend: impl StorageBackend) -> Result<Database, Error> {
    Database::builder()
        .set_cache_size(CACHE_BYTES)
        .create_with_backend(backend)
        .map_err(|error| Error::unavailable("open the store", error))
}

/// Writes the format into a new database, and refuses a newer one; counts its entries if that is necessary.
///
/// Returns the last time that could be believed, if it is known.
pub(super) fn prepare(database: &Database, now: UnixMillis) -> Result<Option<UnixMillis>, Error> {
    let unavailable = |error| match error {
        redb::Error::Corrupted(_) => Error::Corrupt { what: "a page".to_owned(), source: Some(error.into()) },
        error => Error::unavailable("open the store", error),
    };
    let found = match read_format(database).map_err(unavailable)? {
        Some(found) => found,
        None => write_format(database, now).map_err(unavailable)?,
    };
    if found > FORMAT {
        return Err(Error::Newer { found, supported: FORMAT });
    }
    correct_derived(database).and_then(|()| last_time(database)).map_err(unavailable)
}

/// Opens the file, readable by its owner alone: the store contains secrets.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn correct_derived(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    let mut tables = tables::Tables::open(&transaction, CommitTime::steady(0))?;
    let is_corrected = tables.correct_derived()?;
    drop(tables);
    if is_corrected {
        transaction.commit()?;
    } else {
        transaction.abort()?;
    }
    Ok(())
}

fn read_format(database: &Database) -> Result<Option<u64>, redb::Error> {
    match database.begin_read()?.open_table(tables::META) {
        Ok(meta) => Ok(meta.get(tables::FORMAT_KEY)?.map(|found| found.value())),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn last_time(database: &Database) -> Result<Option<UnixMillis>, redb::Error> {
    tables::last_time(&database.begin_read()?.open_table(tables::META)?)
}

/// Creates every table, so that reads find them.
fn write_format(database: &Database, now: UnixMillis) -> Result<u64, redb::Error> {
    let transaction = database.begin_write()?;
    drop(tables::Tables::open(&transaction, CommitTime::steady(now))?);
    let mut meta = transaction.open_table(tables::META)?;
    meta.insert(tables::FORMAT_KEY, FORMAT)?;
    tables::write_time(&mut meta, now)?;
    drop(meta);
    transaction.commit()?;
    Ok(FORMAT)
}
