//! History as its users see it.

mod copy;
mod limits;
mod stored;

use std::{
    collections::BTreeMap,
    mem,
    path::PathBuf,
    sync::Arc,
    thread::{self, JoinHandle},
};

use futures::Stream;
use parking_lot::Mutex;
use types::{AppId, Clock, DevId, Random, Timestamp};

pub use self::{
    copy::{NewDirectory, read_files},
    stored::StoredHistory,
};
use crate::{
    Chart, ChartQuery, Error, ExportPart, Format, LastHeard, Loss, Losses, NewRecord, Page, Query, Record, RecordId,
    Settings, Skipped,
    bucket::Bucket,
    directory::{self, removed::Removal},
    keeper::Keeper,
    reader::{Reader, export},
    record::moment,
    settings::bounds::Bounds,
    tail::{Tail, disk::Disk, group::Queue},
};

/// Names the owner of an application.
pub type OwnerOf = Arc<dyn Fn(&AppId) -> String + Send + Sync>;

/// Services that history uses.
pub struct Environment<'a> {
    /// The time at which records are recorded.
    pub clock: Arc<dyn Clock>,
    /// Source of the number of this process.
    pub random: &'a dyn Random,
    /// Returns the owner of an application: when there is too much, the owner with the most loses the oldest.
    pub owner_of: OwnerOf,
}

/// Keeps records, and finds them again.
pub struct History {
    bounds: Bounds,
    queue: Arc<Queue>,
    disk: Arc<Disk>,
    keeper: Arc<Keeper>,
    reader: Arc<Reader>,
    bucket: Option<Arc<Bucket>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl History {
    /// Opens the history in a directory, and reads what is not in Parquet files yet.
    ///
    /// Other processes may use the same directory: each writes files of its own, and sees what others have moved to
    /// Parquet files.
    pub fn open(dir: impl Into<PathBuf>, settings: Settings, environment: Environment<'_>) -> Result<Arc<Self>, Error> {
        let root = dir.into();
        let Environment { clock, random, owner_of } = environment;
        if settings.bytes_max > 0 {
            directory::create(&root)?;
        }
        let bucket = Bucket::open(&root, &settings.bucket, (random, &owner_of))?.map(Arc::new);
        let bounds = Bounds::new(settings);
        let writer = u64::from_be_bytes(random.array()) as u32;
        let tail = match bounds.is_on() {
            true => Some(Arc::new(Tail::open(&Disk::tail_dir(&root), writer, bounds.segment_bytes_max())?)),
            false => None,
        };
        let queue = Arc::new(Queue::new(Arc::clone(&clock), writer, bounds.queue_bytes_max(), bounds.wait()));
        let disk = Arc::new(Disk::new(root, tail));
        let losses = Arc::clone(&queue.losses);
        let reading = (bounds.scans_max(), Arc::clone(&owner_of));
        let keeper = Arc::new(Keeper::new(Arc::clone(&disk), bounds.clone(), (clock, owner_of), losses, writer));
        let reader = Arc::new(Reader::new(Arc::clone(&disk), bucket.clone(), reading));
        let history = Arc::new(Self { bounds, queue, disk, keeper, reader, bucket, threads: Mutex::default() });
        history.start()?;
        Ok(history)
    }

    /// Starts the threads that write and that keep order.
    fn start(&self) -> Result<(), Error> {
        let Some(tail) = self.disk.tail.clone() else { return Ok(()) };
        self.keeper.count_damaged()?;
        let tail_waits = tail.ended_count() > 0;
        let (queue, keeper) = (Arc::clone(&self.queue), Arc::clone(&self.keeper));
        let writing = spawn("history-write", move || write(&queue, &tail, &keeper))?;
        let keeper = Arc::clone(&self.keeper);
        if tail_waits {
            keeper.wake();
        }
        let keeping = spawn("history-keep", move || keeper.run())?;
        let uploading = self.bucket.clone().map(|bucket| {
            let keeper = Arc::clone(&self.keeper);
            spawn("history-upload", move || keeper.run_uploads(&bucket))
        });
        let threads = [writing, keeping].into_iter().chain(uploading.transpose()?);
        self.threads.lock().extend(threads);
        Ok(())
    }

    /// Puts a record into the group that is written next, at once and without waiting.
    ///
    /// The future resolves when the record is on disk, or says why it is not: after `wait_ms_max` at the latest. A group
    /// is written once a future of it is polled, or it is large; soon if one is dropped.
    pub fn append(&self, record: &NewRecord<'_>) -> impl Future<Output = Result<RecordId, Loss>> + Send + use<> {
        let pending = if self.bounds.keeps(record.app_id) { self.queue.push(record) } else { Err(Loss::Off) };
        if let Err(loss) = &pending {
            self.queue.losses.add(*loss, 1);
        }
        async move {
            match pending {
                Ok(pending) => pending.wait().await,
                Err(loss) => Err(loss),
            }
        }
    }

    /// Counts a record that was not appended, for a reason that only its source knows.
    pub fn count_loss(&self, loss: Loss) {
        self.queue.losses.add(loss, 1);
    }

    /// Returns true if the settings keep anything of an application.
    pub fn keeps(&self, app_id: &AppId) -> bool {
        self.bounds.keeps(app_id)
    }

    /// One page of the records that are wanted.
    pub async fn query(&self, query: Query) -> Result<Page, Error> {
        self.reader.page(query).await
    }

    /// The record with this id. Otherwise the files that could not be read and may have it, by their names; none if the
    /// application has no such record.
    pub async fn get(&self, app_id: &AppId, id: RecordId) -> Result<Result<Record, Vec<Skipped>>, Error> {
        stored::find(&self.reader, app_id, id).await
    }

    /// The newest corrections of an uplink, at most ten, by revision; other records have none.
    pub async fn corrections(&self, record: &Record) -> Result<Page, Error> {
        stored::corrections(&self.reader, record).await
    }

    /// Numeric fields of a device over time, as so many points.
    pub async fn chart(&self, query: ChartQuery) -> Result<Chart, Error> {
        self.reader.chart(query).await
    }

    /// When the devices of an application were last heard: since a time, or ever.
    pub async fn last_heard(&self, app_id: &AppId, since: Option<Timestamp>) -> Result<LastHeard, Error> {
        self.reader.last_heard(app_id, since).await
    }

    /// All records that are wanted, in large pages, whatever the limit of the query.
    pub fn batches(&self, query: Query) -> impl Stream<Item = Result<Page, Error>> + Send + use<> {
        self.reader.batches(query)
    }

    /// All records that are wanted as a file in parts, whatever the limit of the query.
    pub fn export(&self, query: Query, format: Format) -> impl Stream<Item = Result<ExportPart, Error>> + Send + use<> {
        export::export(self.reader.batches(query), format)
    }

    /// Deletes what is recorded of an application so far.
    pub async fn remove_application(&self, app_id: &AppId) -> Result<(), Error> {
        let app_id = app_id.clone();
        self.keep(move |keeper| keeper.remove(&app_id, None)).await
    }

    /// Deletes what is recorded of a device so far.
    pub async fn remove_device(&self, app_id: &AppId, dev_id: &DevId) -> Result<(), Error> {
        let (app_id, dev_id) = (app_id.clone(), dev_id.clone());
        self.keep(move |keeper| keeper.remove(&app_id, Some(&dev_id))).await
    }

    /// Deletes what was recorded of a device until a time, also if a device has its id again.
    ///
    /// The records are hidden at once, and for good. After an error, they may be in files for another hour.
    pub async fn remove_device_until(&self, app_id: &AppId, dev_id: &DevId, until: Timestamp) -> Result<(), Error> {
        let last = RecordId::last(moment::millis(until));
        let removal = Removal { app_id: app_id.to_string(), dev_id: Some(dev_id.to_string()), last };
        let disk = Arc::clone(&self.disk);
        self.keep(move |keeper| if disk.hide(&removal)? { keeper.full_pass() } else { Ok(()) }).await
    }

    /// Writes the limits within which functions ran, by the first bytes of their hashes, for programs that read the files
    /// of records. Nothing is written while history is off.
    pub async fn write_limits(&self, limits: BTreeMap<[u8; 8], BTreeMap<String, u64>>) -> Result<(), Error> {
        if !self.bounds.is_on() {
            return Ok(());
        }
        let (disk, bucket) = (Arc::clone(&self.disk), self.bucket.clone());
        self.keep(move |_| limits::write(&disk, bucket.as_deref(), &limits)).await
    }

    /// Moves what is due to Parquet files, and deletes what is too old or too much, as happens each minute anyway.
    pub async fn maintain(&self) -> Result<(), Error> {
        self.keep(Keeper::full_pass).await
    }

    /// Moves everything to Parquet files now.
    pub async fn seal(&self) -> Result<(), Error> {
        self.keep(Keeper::seal_now).await
    }

    /// Brings the bucket to what is in files here, as happens after each change anyway.
    pub async fn upload(&self) -> Result<(), Error> {
        let Some(bucket) = self.bucket.clone() else { return Ok(()) };
        self.keep(move |keeper| keeper.upload(&bucket).map(drop)).await
    }

    async fn keep(&self, work: impl FnOnce(&Keeper) -> Result<(), Error> + Send + 'static) -> Result<(), Error> {
        let keeper = Arc::clone(&self.keeper);
        let done = tokio::task::spawn_blocking(move || work(&keeper)).await;
        done.map_err(|error| Error::Task(error.into()))?
    }

    /// Returns the counts of records that were not kept.
    pub fn losses(&self) -> &Losses {
        &self.queue.losses
    }

    /// Writes what waits, and ends the threads. Later records are not kept.
    pub async fn close(&self) -> Result<(), Error> {
        self.end();
        let threads = mem::take(&mut *self.threads.lock());
        let joined = tokio::task::spawn_blocking(move || threads.into_iter().try_for_each(JoinHandle::join)).await;
        let panicked = |_| Error::Task("a thread of history panicked".into());
        joined.map_err(|error| Error::Task(error.into()))?.map_err(panicked)
    }

    fn end(&self) {
        self.queue.close();
        self.keeper.close();
        self.bucket.iter().for_each(|bucket| bucket.close());
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.end();
    }
}

/// Writes groups until the queue is closed.
fn write(queue: &Queue, tail: &Tail, keeper: &Keeper) {
    let mut ended = 0;
    while let Some(group) = queue.take() {
        let result = tail.write(&group.blocks);
        queue.done(group, result);
        let before = mem::replace(&mut ended, tail.ended_count());
        // Only for each new one: if they cannot be sealed now, that is tried again each minute.
        if ended > before {
            keeper.wake();
        }
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    thread::Builder::new().name(name.to_owned()).spawn(run).map_err(|error| Error::Task(error.into()))
}
