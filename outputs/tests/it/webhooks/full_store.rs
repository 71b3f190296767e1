//! A store that can be told to refuse batches that store more.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use server::system::SystemClock;
use store::{
    Batch, Commit, Embedded, Entry, Error, Key, Page, Rate, Store, StoreClock, Tag, TakenTokens, UsageCursor, UsagePage,
};
use types::Clock;

pub(super) struct FullStore {
    store: Embedded,
    is_full: AtomicBool,
}

impl FullStore {
    pub(super) fn new() -> Self {
        let clock = StoreClock::new(|| SystemClock.now().as_unix_ms());
        Self { store: Embedded::in_memory(clock).unwrap(), is_full: AtomicBool::new(false) }
    }

    pub(super) fn refuse(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::SeqCst);
    }
}

#[async_trait]
impl Store for FullStore {
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
        self.store.commit(batch).await
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
