//! The writer thread: it commits all waiting writes as one group, with one flush to disk.

use std::{sync::Arc, thread};

use redb::Database;
use tokio::sync::{mpsc, oneshot};

use super::{
    failure::{Failure, panics_as_errors},
    open::OpenDatabase,
    tables::{Fault, Tables},
};
use crate::{Error, clock::steadiness::Steadiness};

/// Maximum number of writes that wait for the writer; beyond that, callers wait.
const WAITING_MAX: usize = 1024;
const GROUP_MAX: usize = 256;

/// One step of a transaction; the returned function is called when the transaction is on disk.
type Job = Box<dyn FnOnce(&mut Tables<'_>) -> Result<Reply, Box<redb::Error>> + Send>;
type Reply = Box<dyn FnOnce() + Send>;

/// The handle of the writer thread; dropping it waits for accepted writes.
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread, which reports to `failure` why it ended.
    pub(super) fn start(database: Arc<OpenDatabase>, time: Steadiness, failure: Failure) -> Result<Self, Error> {
        let (jobs, waiting) = mpsc::channel(WAITING_MAX);
        let run = move || {
            if let Err(error) = panics_as_errors(|| run(&database, &time, waiting)) {
                tracing::error!(%error, "the store failed and accepts no more writes: check the disk, then restart");
                failure.report(Arc::from(error));
            }
        };
        let thread = thread::Builder::new().name("store-writer".to_owned()).spawn(run);
        let thread = thread.map_err(|error| Error::unavailable("start the writer of the store", error))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Runs `step` in the next transaction, and waits until that is on disk.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        what: &'static str,
        step: impl FnOnce(&mut Tables<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, reply) = oneshot::channel();
        let job: Job = Box::new(move |tables| {
            let result = match step(tables) {
                Ok(value) => Ok(value),
                Err(Fault::Refused(error)) => Err(error),
                Err(Fault::Storage(error)) => return Err(error),
            };
            // The caller may have been cancelled.
            Ok(Box::new(move || drop(sender.send(result))))
        });
        let gone = || Error::Unavailable { what, source: None };
        self.jobs.as_ref().ok_or_else(gone)?.send(job).await.map_err(|_| gone())?;
        // A job without a reply was dropped with its transaction.
        reply.await.map_err(|_| gone())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // If the writer panicked, its callers have got an error already.
            let _ = thread.join();
        }
    }
}

/// Writes until the handle is dropped or storage fails.
///
/// After a failed flush the state on disk is unknown, and another attempt could hide that, so the writer ends. Every
/// later write then fails with [`Error::Unavailable`].
fn run(database: &Database, time: &Steadiness, mut waiting: mpsc::Receiver<Job>) -> Result<(), Box<redb::Error>> {
    while let Some(first) = waiting.blocking_recv() {
        let mut group = vec![first];
        while group.len() < GROUP_MAX
            && let Ok(job) = waiting.try_recv()
        {
            group.push(job);
        }
        commit(database, time, group)?.into_iter().for_each(|response| response());
    }
    Ok(())
}

fn commit(database: &Database, time: &Steadiness, group: Vec<Job>) -> Result<Vec<Reply>, Box<redb::Error>> {
    let transaction = database.begin_write().map_err(boxed)?;
    let mut tables = Tables::open(&transaction, time.look()).map_err(Box::new)?;
    let replies = group.into_iter().map(|job| job(&mut tables)).collect::<Result<Vec<_>, _>>()?;
    if tables.changes == 0 {
        // Conflicts and checks changed nothing that must reach the disk.
        drop(tables);
        transaction.abort().map_err(boxed)?;
    } else {
        tables.finish().map_err(Box::new)?;
        drop(tables);
        transaction.commit().map_err(boxed)?;
    }
    Ok(replies)
}

fn boxed(error: impl Into<redb::Error>) -> Box<redb::Error> {
    Box::new(error.into())
}
