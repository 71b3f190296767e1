//! A store that records what is read, and runs something between two reads.

use std::{
    mem,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use store::{Batch, Clock, Commit, Embedded, Entry, Error, Key, Lease, Page, Rate, Store, Token, Watch};

/// A store in memory that records its reads.
pub struct RecordingStore {
    store: Embedded,
    /// The keys of each `get`.
    reads: Mutex<Vec<Vec<Key>>>,
    interruption: Interruption,
    list_interruption: Interruption,
}

/// Runs once, after the next call.
type Interruption = Mutex<Option<BoxFuture<'static, ()>>>;

impl RecordingStore {
    pub fn new() -> Self {
        let store = Embedded::in_memory(Clock::new(|| 0)).unwrap();
        Self { store, reads: Mutex::default(), interruption: Mutex::default(), list_interruption: Mutex::default() }
    }

    /// The `get` calls since the last time: one line each, the paths of its keys.
    pub fn take_reads(&self) -> Vec<String> {
        let paths = |keys: Vec<Key>| keys.iter().map(Key::path).collect::<Vec<_>>().join(", ");
        mem::take(&mut *self.reads()).into_iter().map(paths).collect()
    }

    /// Runs this right after the next `get`.
    pub fn interrupt(&self, what: BoxFuture<'static, ()>) {
        *self.interruption.lock().unwrap() = Some(what);
    }

    /// Runs this right after the next `list`.
    pub fn interrupt_list(&self, what: BoxFuture<'static, ()>) {
        *self.list_interruption.lock().unwrap() = Some(what);
    }

    fn reads(&self) -> MutexGuard<'_, Vec<Vec<Key>>> {
        self.reads.lock().unwrap()
    }
}

async fn run(interruption: &Interruption) {
    let what = interruption.lock().unwrap().take();
    if let Some(what) = what {
        what.await;
    }
}

#[async_trait]
impl Store for RecordingStore {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, Error> {
        self.reads().push(keys.to_vec());
        let found = self.store.get(keys).await;
        run(&self.interruption).await;
        found
    }

    async fn list(&self, prefix: &Key, after: Option<&Key>, limit: usize) -> Result<Vec<Entry>, Error> {
        let found = self.store.list(prefix, after, limit).await;
        run(&self.list_interruption).await;
        found
    }

    async fn page(&self, prefix: &Key, offset: usize, limit: usize) -> Result<Page, Error> {
        self.store.page(prefix, offset, limit).await
    }

    async fn commit(&self, batch: Batch) -> Result<Commit, Error> {
        self.store.commit(batch).await
    }

    async fn take_token(&self, key: &Key, rate: Rate) -> Result<Token, Error> {
        self.store.take_token(key, rate).await
    }

    async fn reserve(&self, queue: &Key, consumer: &str, count: usize, time: Duration) -> Result<Vec<Lease>, Error> {
        self.store.reserve(queue, consumer, count, time).await
    }

    async fn ack(&self, queue: &Key, lease: &Lease) -> Result<bool, Error> {
        self.store.ack(queue, lease).await
    }

    async fn notify(&self, channel: &str, message: Bytes) -> Result<(), Error> {
        self.store.notify(channel, message).await
    }

    fn watch(&self, channel: &str) -> Result<Watch, Error> {
        self.store.watch(channel)
    }

    async fn check(&self) -> Result<(), Error> {
        self.store.check().await
    }
}
