//! Tests that need a failing disk, or a look into the tables.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use redb::{StorageBackend, backends::InMemoryBackend};

use super::*;
use crate::{ErrorKind, Tag};

/// Memory whose reads and flushes can be made to fail.
#[derive(Debug)]
struct FailingDisk {
    memory: InMemoryBackend,
    fails: Arc<AtomicBool>,
    /// Panics instead, as redb does when it reads some damaged pages.
    panics: bool,
}

impl FailingDisk {
    fn result(&self) -> io::Result<()> {
        assert!(!(self.panics && self.fails.load(Ordering::SeqCst)), "a page is damaged");
        if self.fails.load(Ordering::SeqCst) { Err(io::Error::other("the disk is broken")) } else { Ok(()) }
    }
}

impl StorageBackend for FailingDisk {
    fn len(&self) -> io::Result<u64> {
        self.memory.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.result()?;
        self.memory.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.memory.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.result()?;
        self.memory.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.memory.write(offset, data)
    }
}

#[tokio::test]
async fn refuses_writes_after_a_failed_flush() {
    let fails = Arc::new(AtomicBool::new(false));
    let disk = FailingDisk { memory: InMemoryBackend::new(), fails: Arc::clone(&fails), panics: false };
    let store = Embedded::start(open::backend(disk).unwrap(), StoreClock::new(|| 0)).unwrap();
    let key = Key::new(&Tag::user("eve").unwrap(), "x").unwrap();
    let put = || store.commit(Batch::new().put(key.clone(), "value"));
    assert_eq!(put().await.unwrap(), Commit::Done);

    fails.store(true, Ordering::SeqCst);
    assert_eq!(put().await.unwrap_err().kind(), ErrorKind::Unavailable);
    fails.store(false, Ordering::SeqCst);
    assert_eq!(put().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(store.check().await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn says_that_it_failed_for_good() {
    let fails = Arc::new(AtomicBool::new(false));
    let disk = FailingDisk { memory: InMemoryBackend::new(), fails: Arc::clone(&fails), panics: false };
    let store = Embedded::start(open::backend(disk).unwrap(), StoreClock::new(|| 0)).unwrap();
    let key = Key::new(&Tag::user("eve").unwrap(), "x").unwrap();
    let failure = store.failure();
    fails.store(true, Ordering::SeqCst);
    assert!(store.commit(Batch::new().put(key, "value")).await.is_err());
    let error = failure.await;
    assert!(matches!(error, Error::Failed { .. }) && error.to_string().contains("check the disk"), "{error}");
}

#[derive(Clone, Copy, Debug)]
enum Use {
    Get,
    List,
    Commit,
}

#[tokio::test]
async fn a_failed_read_counts_as_a_failure_for_good() {
    for (how, panics) in
        [(Use::Get, false), (Use::List, false), (Use::Get, true), (Use::List, true), (Use::Commit, true)]
    {
        let fails = Arc::new(AtomicBool::new(false));
        let disk = FailingDisk { memory: InMemoryBackend::new(), fails: Arc::clone(&fails), panics };
        // Without a cache, everything is read from the disk.
        let database = Database::builder().set_cache_size(0).create_with_backend(disk).unwrap();
        let store = Embedded::start(database, StoreClock::new(|| 0)).unwrap();
        let key = Key::new(&Tag::user("eve").unwrap(), "x").unwrap();
        let put = || store.commit(Batch::new().put(key.clone(), "value"));
        assert_eq!(put().await.unwrap(), Commit::Done);
        let failure = store.failure();
        fails.store(true, Ordering::SeqCst);
        let error = match how {
            Use::Get => store.get(std::slice::from_ref(&key)).await.map(drop).unwrap_err(),
            Use::List => store.list(&key, None, 10).await.map(drop).unwrap_err(),
            Use::Commit => put().await.map(drop).unwrap_err(),
        };
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{how:?}: {error}");
        assert!(matches!(failure.await, Error::Failed { .. }), "{how:?}");
        fails.store(false, Ordering::SeqCst);
    }
}

/// Reads only some of the keys, however many there are.
#[tokio::test]
async fn a_page_of_many_entries_reads_few() {
    let (store, tag) = (Embedded::in_memory(StoreClock::new(|| 0)).unwrap(), Tag::user("eve").unwrap());
    let key = |path: &str| Key::new(&tag, path).unwrap();
    for hundreds in 0..300 {
        let batch =
            (0..100).fold(Batch::new(), |batch, number| batch.put(key(&format!("d/{hundreds:03}{number:02}")), "x"));
        assert_eq!(store.commit(batch).await.unwrap(), Commit::Done);
    }
    for offset in [0, 1, 14_321, 29_995] {
        let (page, walked) = page::page_and_reads(&store.database, &key("d/"), offset, 10, 0).unwrap();
        let paths: Vec<_> = page.entries.iter().map(|entry| entry.key.path().to_owned()).collect();
        let expected: Vec<_> = (offset..30_000).take(10).map(|number| format!("d/{number:05}")).collect();
        assert_eq!((paths, page.total), (expected, 30_000));
        assert!(walked < 1000, "read {walked} entries");
    }
}

#[tokio::test]
async fn later_commits_remove_expired_entries() {
    let clock = Arc::new(std::sync::atomic::AtomicU64::new(1));
    let now = Arc::clone(&clock);
    let store = Embedded::in_memory(StoreClock::new(move || now.load(Ordering::SeqCst))).unwrap();
    let tag = Tag::user("eve").unwrap();
    let key = |number: u32| Key::new(&tag, &number.to_string()).unwrap();
    let codes = (0..100).fold(Batch::new(), |batch, number| batch.put_until(key(number), "code", 10));
    assert_eq!(store.commit(codes).await.unwrap(), Commit::Done);

    clock.store(10, Ordering::SeqCst);
    for number in 1000..1002 {
        assert_eq!(store.commit(Batch::new().put(key(number), "value")).await.unwrap(), Commit::Done);
    }
    let entries = store.database.begin_read().unwrap().open_table(tables::ENTRIES).unwrap();
    assert_eq!(redb::ReadableTableMetadata::len(&entries).unwrap(), 2);
}
