//! A store each call of which takes some time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use store::{Batch, Commit, Embedded, Entry, Error, Key, Page, Rate, Store, Tag, TakenTokens, UsageCursor, UsagePage};

use crate::ManualClock;

/// A store in memory that can be slowed down, by the clock that it is given.
pub struct SlowStore {
    store: Embedded,
    clock: Arc<ManualClock>,
    call_ms: AtomicU64,
}

impl SlowStore {
    /// A store that is not slow yet.
    pub fn new(clock: Arc<ManualClock>) -> Self {
        Self { store: Embedded::in_memory(clock.for_store()).unwrap(), clock, call_ms: AtomicU64::new(0) }
    }

    /// From now on, each call takes so long.
    pub fn slow_down(&self, call: Duration) {
        self.call_ms.store(call.as_millis().try_into().unwrap(), Ordering::SeqCst);
    }

    fn take_time(&self) {
        self.clock.advance(Duration::from_millis(self.call_ms.load(Ordering::SeqCst)));
    }
}

#[async_trait]
impl Store for SlowStore {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, Error> {
        self.take_time();
        self.store.get(keys).await
    }

    async fn list(&self, prefix: &Key, after: Option<&Key>, limit: usize) -> Result<Vec<Entry>, Error> {
        self.take_time();
        self.store.list(prefix, after, limit).await
    }

    async fn page(&self, prefix: &Key, offset: usize, limit: usize) -> Result<Page, Error> {
        self.take_time();
        self.store.page(prefix, offset, limit).await
    }

    async fn commit(&self, batch: Batch) -> Result<Commit, Error> {
        self.take_time();
        self.store.commit(batch).await
    }

    async fn take_tokens(&self, key: &Key, rate: Rate, wanted: u32) -> Result<TakenTokens, Error> {
        self.take_time();
        self.store.take_tokens(key, rate, wanted).await
    }

    async fn usage(&self, from: Option<&UsageCursor>) -> Result<UsagePage, Error> {
        self.take_time();
        self.store.usage(from).await
    }

    async fn usage_of(&self, tags: &[Tag]) -> Result<Vec<u64>, Error> {
        self.take_time();
        self.store.usage_of(tags).await
    }

    async fn check(&self) -> Result<(), Error> {
        self.take_time();
        self.store.check().await
    }
}
