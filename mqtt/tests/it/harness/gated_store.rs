//! A store that counts commits, and that can be cut off from a process that was killed.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use async_trait::async_trait;
use store::{Batch, Commit, Entry, Error, Key, Page, Rate, Store, Tag, TakenTokens, UsageCursor, UsagePage};
use tokio::sync::{RwLock, RwLockWriteGuard};

const UNREACHABLE: Error = Error::Unavailable { what: "reach the store", source: None };

/// One process's access to a store.
pub struct GatedStore {
    store: Arc<dyn Store>,
    is_cut: AtomicBool,
    is_hanging: AtomicBool,
    unreadable: Mutex<Option<Key>>,
    commits: AtomicUsize,
    messages_read: AtomicUsize,
    log_reads: LogReads,
}

/// Reads of whole logs: how many began, how many are going on, and the most of these. They wait for the lock.
#[derive(Default)]
struct LogReads {
    begun: AtomicUsize,
    running: AtomicUsize,
    most: AtomicUsize,
    held: RwLock<()>,
}

impl GatedStore {
    pub fn new(store: &Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            store: store.clone(),
            is_cut: AtomicBool::new(false),
            is_hanging: AtomicBool::new(false),
            unreadable: Mutex::new(None),
            commits: AtomicUsize::new(0),
            messages_read: AtomicUsize::new(0),
            log_reads: LogReads::default(),
        })
    }

    /// From now on nothing is read or written through this access.
    pub fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::SeqCst);
    }

    /// From now on nothing is answered.
    pub fn hang(&self) {
        self.is_hanging.store(true, Ordering::SeqCst);
    }

    /// From now on nothing is read below this key.
    pub fn set_unreadable(&self, prefix: Option<Key>) {
        *self.unreadable.lock().unwrap() = prefix;
    }

    pub fn commits(&self) -> usize {
        self.commits.load(Ordering::SeqCst)
    }

    /// Returns the number of messages read from logs.
    pub fn messages_read(&self) -> usize {
        self.messages_read.load(Ordering::SeqCst)
    }

    /// Returns the number of times that reading a log began.
    pub fn log_reads(&self) -> usize {
        self.log_reads.begun.load(Ordering::SeqCst)
    }

    /// Returns the maximum number of logs read at the same time.
    pub fn simultaneous_log_reads(&self) -> usize {
        self.log_reads.most.load(Ordering::SeqCst)
    }

    /// As long as the value exists, reading a log does not end.
    pub async fn hold_log_reads(&self) -> RwLockWriteGuard<'_, ()> {
        self.log_reads.held.write().await
    }

    fn check_readable(&self, keys: &[Key]) -> Result<(), Error> {
        let prefix = self.unreadable.lock().unwrap().clone();
        match prefix.is_some_and(|prefix| keys.iter().any(|key| key.as_str().starts_with(prefix.as_str()))) {
            true => Err(UNREACHABLE),
            false => Ok(()),
        }
    }

    async fn check_gate(&self) -> Result<&dyn Store, Error> {
        if self.is_hanging.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        match self.is_cut.load(Ordering::SeqCst) {
            true => Err(UNREACHABLE),
            false => Ok(self.store.as_ref()),
        }
    }
}

#[async_trait]
impl Store for GatedStore {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, Error> {
        self.check_readable(keys)?;
        self.check_gate().await?.get(keys).await
    }

    async fn list(&self, prefix: &Key, after: Option<&Key>, limit: usize) -> Result<Vec<Entry>, Error> {
        let is_log = prefix.path().starts_with("mqtt/log/");
        let reads = &self.log_reads;
        if is_log && after.is_none() {
            reads.begun.fetch_add(1, Ordering::SeqCst);
            let running = reads.running.fetch_add(1, Ordering::SeqCst) + 1;
            reads.most.fetch_max(running, Ordering::SeqCst);
            drop(reads.held.read().await);
            reads.running.fetch_sub(1, Ordering::SeqCst);
        }
        self.check_readable(std::slice::from_ref(prefix))?;
        let found = self.check_gate().await?.list(prefix, after, limit).await?;
        if is_log {
            self.messages_read.fetch_add(found.len(), Ordering::SeqCst);
        }
        Ok(found)
    }

    async fn page(&self, prefix: &Key, offset: usize, limit: usize) -> Result<Page, Error> {
        self.check_gate().await?.page(prefix, offset, limit).await
    }

    async fn commit(&self, batch: Batch) -> Result<Commit, Error> {
        self.commits.fetch_add(1, Ordering::SeqCst);
        self.check_gate().await?.commit(batch).await
    }

    async fn take_tokens(&self, key: &Key, rate: Rate, wanted: u32) -> Result<TakenTokens, Error> {
        self.check_gate().await?.take_tokens(key, rate, wanted).await
    }

    async fn usage(&self, from: Option<&UsageCursor>) -> Result<UsagePage, Error> {
        self.check_gate().await?.usage(from).await
    }

    async fn usage_of(&self, tags: &[Tag]) -> Result<Vec<u64>, Error> {
        self.check_gate().await?.usage_of(tags).await
    }

    async fn check(&self) -> Result<(), Error> {
        self.check_gate().await?.check().await
    }
}
