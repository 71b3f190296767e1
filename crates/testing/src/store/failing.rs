//! A store that stops writing, as if its process had been killed or its budget were used up.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, Ordering},
};

use async_trait::async_trait;
use store::{
    Batch, Commit, Embedded, Entry, Error, Key, Page, Rate, Store, StoreClock, Tag, TakenTokens, UsageCursor, UsagePage,
};

/// A store that can be told to fail every commit after the next few, or those that store more.
pub struct FailingStore {
    store: Arc<dyn Store>,
    commits_left: AtomicI64,
    is_full: AtomicBool,
}

impl FailingStore {
    /// A store in memory that does not fail yet.
    pub fn new(clock: StoreClock) -> Self {
        Self::over(Arc::new(Embedded::in_memory(clock).unwrap()))
    }

    /// This store, which does not fail yet.
    pub fn over(store: Arc<dyn Store>) -> Self {
        Self { store, commits_left: AtomicI64::new(i64::MAX), is_full: AtomicBool::new(false) }
    }

    /// Fails every commit after the next `commits`.
    pub fn fail_after(&self, commits: i64) {
        self.commits_left.store(commits, Ordering::Relaxed);
    }

    /// The number of commits that it has failed since [`FailingStore::fail_after`].
    pub fn failed(&self) -> u64 {
        self.commits_left.load(Ordering::Relaxed).min(0).unsigned_abs()
    }

    /// From now on refuses batches that store more, or none.
    pub fn set_full(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::SeqCst);
    }

    /// Lets commits succeed again.
    pub fn recover(&self) {
        self.fail_after(i64::MAX);
    }
}

#[async_trait]
impl Store for FailingStore {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, Error> {
        self.store.get(keys).await
    }

    async fn list(&self, prefix: &Key, after: Option<&Key>, limit: usize) -> Result<Vec<Entry>, Error> {
        self.store.list(prefix, after, limit).await
    }

    async fn page(&self, prefix: &Key, offset: usize, limit: usize) -> Result<Page, Error> {
        self.store.page(prefix, offset, limit).await
    }

    async fn commit(&self, batch: Batch) -> Result<Commit, Error> {
        if batch.is_growing() && self.is_full.load(Ordering::SeqCst) {
            return Err(Error::Full { reason: "the budget of stored bytes is used up".to_owned() });
        }
        if self.commits_left.fetch_sub(1, Ordering::Relaxed) > 0 {
            self.store.commit(batch).await
        } else {
            Err(Error::Unavailable { what: "write", source: None })
        }
    }

    async fn take_tokens(&self, key: &Key, rate: Rate, wanted: u32) -> Result<TakenTokens, Error> {
        self.store.take_tokens(key, rate, wanted).await
    }

    async fn usage(&self, from: Option<&UsageCursor>) -> Result<UsagePage, Error> {
        self.store.usage(from).await
    }

    async fn usage_of(&self, tags: &[Tag]) -> Result<Vec<u64>, Error> {
        self.store.usage_of(tags).await
    }

    async fn check(&self) -> Result<(), Error> {
        self.store.check().await
    }
}
