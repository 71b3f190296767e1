//! A store that records reads, and can run a closure between two of them.

use std::{mem, sync::Mutex};

use async_trait::async_trait;
use futures::future::BoxFuture;
use store::{
    Batch, Commit, Embedded, Entry, Error, Key, Page, Rate, Store, StoreClock, Tag, TakenTokens, UsageCursor, UsagePage,
};

/// A store in memory that records its reads.
pub struct RecordingStore {
    store: Embedded,
    /// The keys of each `get`.
    reads: Mutex<Vec<Vec<Key>>>,
    after_get: Interruption,
    after_list: Interruption,
    after_commit: Interruption,
}

/// Runs once, after the next call.
type Interruption = Mutex<Option<BoxFuture<'static, ()>>>;

impl RecordingStore {
    /// An empty store.
    pub fn new(clock: StoreClock) -> Self {
        let store = Embedded::in_memory(clock).unwrap();
        Self {
            store,
            reads: Mutex::default(),
            after_get: Mutex::default(),
            after_list: Mutex::default(),
            after_commit: Mutex::default(),
        }
    }

    /// The `get` calls since the last time: one line each, the paths of its keys.
    pub fn take_reads(&self) -> Vec<String> {
        let paths = |keys: Vec<Key>| keys.iter().map(Key::path).collect::<Vec<_>>().join(", ");
        mem::take(&mut *self.reads.lock().unwrap()).into_iter().map(paths).collect()
    }

    /// Runs `interruption` right after the next `get`, before its caller continues.
    pub fn interrupt(&self, interruption: BoxFuture<'static, ()>) {
        *self.after_get.lock().unwrap() = Some(interruption);
    }

    /// Runs `interruption` right after the next `list`, before its caller continues.
    pub fn interrupt_list(&self, interruption: BoxFuture<'static, ()>) {
        *self.after_list.lock().unwrap() = Some(interruption);
    }

    /// Runs `interruption` right after the next `commit`, before its caller continues.
    pub fn interrupt_commit(&self, interruption: BoxFuture<'static, ()>) {
        *self.after_commit.lock().unwrap() = Some(interruption);
    }
}

async fn run(interruption: &Interruption) {
    let interruption = interruption.lock().unwrap().take();
    if let Some(interruption) = interruption {
        interruption.await;
    }
}

#[async_trait]
impl Store for RecordingStore {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, Error> {
        self.reads.lock().unwrap().push(keys.to_vec());
        let found = self.store.get(keys).await;
        run(&self.after_get).await;
        found
    }

    async fn list(&self, prefix: &Key, after: Option<&Key>, limit: usize) -> Result<Vec<Entry>, Error> {
        let found = self.store.list(prefix, after, limit).await;
        run(&self.after_list).await;
        found
    }

    async fn page(&self, prefix: &Key, offset: usize, limit: usize) -> Result<Page, Error> {
        self.store.page(prefix, offset, limit).await
    }

    async fn commit(&self, batch: Batch) -> Result<Commit, Error> {
        let committed = self.store.commit(batch).await;
        run(&self.after_commit).await;
        committed
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
