//! History as its users see it.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
};

use futures::Stream;
use types::{AppId, Clock, DevId, Random};

use crate::{
    Error, Kept, Loss, Losses, NewRecord, Page, Query, Record, RecordId, Settings, Usage,
    bounds::Bounds,
    reader::Reader,
    tail::{Tail, group::Queue},
};

/// Keeps records, and finds them again.
pub struct History {
    bounds: Bounds,
    queue: Arc<Queue>,
    reader: Arc<Reader>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl History {
    /// Opens the history in a directory, and reads what is not in Parquet files yet.
    ///
    /// Other processes may use the same directory: each writes files of its own, and sees what others have moved to
    /// Parquet files.
    pub fn open(
        dir: impl Into<PathBuf>,
        settings: Settings,
        clock: Arc<dyn Clock>,
        random: &dyn Random,
    ) -> Result<Arc<Self>, Error> {
        let dir = dir.into();
        let bounds = Bounds::new(settings);
        let writer = u64::from_be_bytes(random.array()) as u32;
        let tail = match bounds.is_on() {
            true => Some(Arc::new(Tail::open(&dir.join(TAIL), writer, bounds.segment_bytes_max())?)),
            false => None,
        };
        let queue = Arc::new(Queue::new(clock, writer, bounds.queue_bytes_max(), bounds.wait()));
        let mut threads = Vec::new();
        if let Some(tail) = &tail {
            let (queue, tail) = (Arc::clone(&queue), Arc::clone(tail));
            threads.push(spawn("history-write", move || write(&queue, &tail))?);
        }
        let reader = Arc::new(Reader::new(dir, tail, bounds.scans_max()));
        Ok(Arc::new(Self { bounds, queue, reader, threads: Mutex::new(threads) }))
    }

    /// Puts a record into the group that is written next, at once and without waiting.
    ///
    /// The future resolves when the record is on disk, or says why it is not: after `wait_ms_max` at the latest.
    /// Dropping it changes nothing.
    pub fn append(&self, record: &NewRecord<'_>) -> impl Future<Output = Kept> + Send + use<> {
        let pending = if self.bounds.keeps(record.app_id) { self.queue.push(record) } else { Err(Loss::Off) };
        if let Err(loss) = &pending {
            self.queue.losses.add(*loss, 1);
        }
        async move {
            match pending {
                Ok(pending) => pending.wait().await,
                Err(loss) => Kept::No(loss),
            }
        }
    }

    /// One page of the records that are wanted.
    pub async fn query(&self, query: Query) -> Result<Page, Error> {
        self.reader.page(query).await
    }

    /// The record with this id. None if the application has none.
    pub async fn get(&self, app_id: &AppId, id: RecordId) -> Result<Option<Record>, Error> {
        let bounds = (Some(id.previous()).filter(|_| id > RecordId::first(0)), Some(id.next()));
        let query = Query { after: bounds.0, before: bounds.1, limit: 1, ..Query::of(app_id.clone()) };
        let page = self.reader.page(query).await?;
        Ok(page.records.into_iter().next().filter(|record| record.id == id))
    }

    /// All records that are wanted, whatever the limit of the query.
    pub fn scan(&self, query: Query) -> impl Stream<Item = Result<Record, Error>> + Send + use<> {
        self.reader.scan(query)
    }

    /// Deletes what is recorded of an application so far.
    pub async fn remove_application(&self, app_id: &AppId) -> Result<(), Error> {
        self.reader.remove(app_id, None).await
    }

    /// Deletes what is recorded of a device so far.
    pub async fn remove_device(&self, app_id: &AppId, dev_id: &DevId) -> Result<(), Error> {
        self.reader.remove(app_id, Some(dev_id)).await
    }

    /// How much is kept of each application.
    pub async fn usage(&self) -> Result<Usage, Error> {
        self.reader.usage().await
    }

    /// How many records were not kept.
    pub fn losses(&self) -> &Losses {
        &self.queue.losses
    }

    /// Writes what waits, and ends the threads. Later records are not kept.
    pub async fn close(&self) -> Result<(), Error> {
        self.queue.close();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let joined = tokio::task::spawn_blocking(move || threads.into_iter().try_for_each(JoinHandle::join)).await;
        let panicked = |_| Error::Task("a thread of history panicked".into());
        joined.map_err(|error| Error::Task(error.into()))?.map_err(panicked)
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// The directory of the tails of all processes.
const TAIL: &str = "tail";

/// Writes groups until the queue is closed.
fn write(queue: &Queue, tail: &Tail) {
    while let Some(group) = queue.take() {
        let result = tail.write(&group.blocks);
        queue.done(&group, result);
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    thread::Builder::new().name(name.to_owned()).spawn(run).map_err(|error| Error::Task(error.into()))
}
