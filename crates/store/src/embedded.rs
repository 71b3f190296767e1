//! The embedded store: one redb file, or memory.
//!
//! `get` reads on the calling thread: snapshots never wait for the writer, and most pages are cached. Lists can touch
//! many pages and run on a few threads of their own. All writes go through one thread.

mod counted;
mod disk;
mod failure;
mod open;
mod page;
mod positions;
mod readers;
mod restore;
mod snapshot;
mod tables;
#[cfg(test)]
mod tests;
mod writer;

use std::{
    ops::{Bound, ControlFlow},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

use async_trait::async_trait;
use bytes::Bytes;
use redb::{Database, ReadableDatabase};

pub use self::{
    disk::{DiskSpace, StoreDisk},
    restore::Restoring,
};
use self::{
    failure::{Failure, panics_as_errors},
    open::OpenDatabase,
    readers::Readers,
    writer::Writer,
};
use crate::{
    Batch, Buckets, Commit, Entry, Error, Key, LIST_MAX, Page, Rate, Snapshot, Store, StoreClock, Tag, TakenTokens,
    UsageCursor, UsagePage, check_after, check_count, clock::steadiness::Steadiness, entry::record::Record,
};

/// A store that only this process has open.
pub struct Embedded {
    database: Arc<OpenDatabase>,
    writer: Writer,
    readers: Readers,
    failure: Failure,
    buckets: Buckets<Key>,
    clock: StoreClock,
}

impl Embedded {
    /// Opens the file at `path`; creates it and its directory if they are missing.
    ///
    /// [`Error::Locked`] when another process has it open, [`Error::Newer`] when a newer version wrote it,
    /// [`Error::Unwritable`] when it cannot be opened for writing.
    pub fn open(path: &Path, clock: StoreClock) -> Result<Self, Error> {
        let opened = catch_unwind(AssertUnwindSafe(|| Self::start(open::file(path, clock.now_ms())?, clock)));
        // redb panics on some damaged pages.
        opened.unwrap_or_else(|_| Err(Error::corrupt(format!("the file {}", path.display()))))
    }

    /// A store in memory, which is lost when it is dropped.
    pub fn in_memory(clock: StoreClock) -> Result<Self, Error> {
        Self::start(open::backend(redb::backends::InMemoryBackend::new())?, clock)
    }

    fn start(database: Database, clock: StoreClock) -> Result<Self, Error> {
        let last_time = open::prepare(&database, clock.now_ms())?;
        let database = Arc::new(OpenDatabase::new(database));
        let failure = Failure::new();
        let time = Steadiness::new(clock.clone(), last_time);
        let writer = Writer::start(Arc::clone(&database), time, failure.clone())?;
        let readers = Readers::start()?;
        Ok(Self { database, writer, readers, failure, buckets: Buckets::default(), clock })
    }

    /// Waits until the store fails for good, as on a full disk or one that cannot be read, and returns the reason. A
    /// process with such a store should end: opened again, the store has all committed changes.
    pub fn failure(&self) -> impl Future<Output = Error> + Send + use<> {
        let failure = self.failure.wait();
        async move { Error::Failed { source: failure.await } }
    }

    /// Waits until the store is dropped, and its file can be opened again: reads and writes that are under way keep it
    /// open.
    pub fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.database.closed()
    }

    /// The disk of the file at `path`, which is open.
    pub fn disk(path: &Path) -> StoreDisk {
        StoreDisk::of(path)
    }

    /// Reads on a thread of the store's own.
    async fn read_many<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Database) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let database = Arc::clone(&self.database);
        let read = self.readers.read("list entries", move || guarded("list entries", || read(&database)));
        read.await.map_err(|error| self.failure.of_read(error))
    }
}

#[async_trait]
impl Store for Embedded {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, Error> {
        check_count(keys)?;
        let read = || get(&self.database, keys, self.clock.now_ms());
        guarded("get entries", read).map_err(|error| self.failure.of_read(error))
    }

    async fn list(&self, prefix: &Key, after: Option<&Key>, limit: usize) -> Result<Vec<Entry>, Error> {
        check_after(prefix, after)?;
        let (prefix, after, now) = (prefix.clone(), after.cloned(), self.clock.now_ms());
        self.read_many(move |database| list(database, &prefix, after.as_ref(), limit.min(LIST_MAX), now)).await
    }

    async fn page(&self, prefix: &Key, offset: usize, limit: usize) -> Result<Page, Error> {
        let (prefix, now) = (prefix.clone(), self.clock.now_ms());
        self.read_many(move |database| page::page(database, &prefix, offset, limit.min(LIST_MAX), now)).await
    }

    async fn commit(&self, batch: Batch) -> Result<Commit, Error> {
        if batch.check()?.is_none() {
            return Ok(Commit::Done);
        }
        self.writer.write("commit a batch", move |tables| tables.commit(&batch)).await
    }

    async fn take_tokens(&self, key: &Key, rate: Rate, wanted: u32) -> Result<TakenTokens, Error> {
        Ok(self.buckets.take_several(key, rate, wanted, self.clock.now_ms()))
    }

    async fn snapshot(&self) -> Result<Snapshot, Error> {
        let seen = self.read_many(snapshot::see).await?;
        snapshot::read(seen, Arc::clone(&self.database), self.failure.clone(), self.clock.now_ms())
    }

    async fn usage(&self, from: Option<&UsageCursor>) -> Result<UsagePage, Error> {
        let from = from.cloned();
        self.read_many(move |database| counted::page(database, from.as_ref())).await
    }

    async fn usage_of(&self, tags: &[Tag]) -> Result<Vec<u64>, Error> {
        check_count(tags)?;
        let tags = tags.to_vec();
        self.read_many(move |database| counted::of(database, &tags)).await
    }

    async fn check(&self) -> Result<(), Error> {
        self.writer.write("check", |_| Ok(())).await
    }
}

/// Reads; a panic is an error, as of a damaged page.
fn guarded<T>(what: &'static str, read: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let read = panics_as_errors(|| Ok::<_, redb::Error>(read()));
    read.unwrap_or_else(|error| Err(Error::unavailable(what, error)))
}

fn get(database: &Database, keys: &[Key], now: u64) -> Result<Vec<Option<Entry>>, Error> {
    let read = || -> Result<Vec<Option<Bytes>>, redb::Error> {
        let entries = database.begin_read()?.open_table(tables::ENTRIES)?;
        let find = |key: &Key| Ok(entries.get(key.as_str())?.map(|found| Bytes::copy_from_slice(found.value())));
        keys.iter().map(find).collect()
    };
    let found = read().map_err(|error| Error::unavailable("get entries", error))?;
    keys.iter().zip(found).map(|(key, bytes)| decode(key, bytes, now)).collect()
}

fn decode(key: &Key, bytes: Option<Bytes>, now: u64) -> Result<Option<Entry>, Error> {
    let Some(bytes) = bytes else { return Ok(None) };
    Ok(Record::decode(bytes, key.as_str())?.entry(key.clone(), now))
}

fn list(database: &Database, prefix: &Key, after: Option<&Key>, limit: usize, now: u64) -> Result<Vec<Entry>, Error> {
    let mut listed = Vec::new();
    walk(database, prefix, after, |path, bytes| {
        if listed.len() == limit {
            return Ok(ControlFlow::Break(()));
        }
        listed.extend(decode(&prefix.sibling(path), Some(Bytes::copy_from_slice(bytes)), now)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(listed)
}

/// Calls `visit` with the path and the record of every key under a prefix, in order, until it breaks.
fn walk(
    database: &Database,
    prefix: &Key,
    after: Option<&Key>,
    mut visit: impl FnMut(&str, &[u8]) -> Result<ControlFlow<()>, Error>,
) -> Result<(), Error> {
    let unavailable = |error: redb::Error| Error::unavailable("list entries", error);
    let open = || -> Result<_, redb::Error> { Ok(database.begin_read()?.open_table(tables::ENTRIES)?) };
    let entries = open().map_err(unavailable)?;
    let from = match after {
        Some(after) if after >= prefix => Bound::Excluded(after.as_str()),
        _ => Bound::Included(prefix.as_str()),
    };
    for found in entries.range::<&str>((from, Bound::Unbounded)).map_err(|error| unavailable(error.into()))? {
        let (text, bytes) = found.map_err(|error| unavailable(error.into()))?;
        let Some(path) = text.value().strip_prefix(prefix.tag()) else { break };
        if !path.starts_with(prefix.path()) || visit(path, bytes.value())?.is_break() {
            break;
        }
    }
    Ok(())
}
