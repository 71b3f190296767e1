//! The one thread that writes: it commits whatever is waiting as one group, with one flush to disk.

use std::{sync::Arc, thread};

use redb::Database;
use tokio::sync::{mpsc, oneshot};

use super::tables::{Fault, Tables};
use crate::{Clock, Error};

/// How many writes wait for the writer before callers wait for room.
const WAITING_MAX: usize = 1024;
/// How many writes share one flush.
const GROUP_MAX: usize = 256;

/// Does its part of a transaction; what it returns is called when that is on disk.
type Job = Box<dyn FnOnce(&mut Tables<'_>) -> Result<Answer, Box<redb::Error>> + Send>;
type Answer = Box<dyn FnOnce() + Send>;

/// Where writes are handed in; when it is dropped, those that wait are done first.
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(database: Arc<Database>, clock: Clock) -> Result<Self, Error> {
        let (jobs, waiting) = mpsc::channel(WAITING_MAX);
        let run = move || run(&database, &clock, waiting);
        let thread = thread::Builder::new().name("store-writer".to_owned()).spawn(run);
        let thread = thread.map_err(|error| Error::unavailable("start the writer of the store", error))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Makes `step` part of the next transaction, and waits until that is on disk.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        what: &'static str,
        step: impl FnOnce(&mut Tables<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |tables| {
            let result = match step(tables) {
                Ok(value) => Ok(value),
                Err(Fault::Refused(error)) => Err(error),
                Err(Fault::Storage(error)) => return Err(error),
            };
            // Whoever asked may have gone away.
            Ok(Box::new(move || drop(reply.send(result))))
        });
        let gone = || Error::Unavailable { what, source: None };
        self.jobs.as_ref().ok_or_else(gone)?.send(job).await.map_err(|_| gone())?;
        // A job that was not answered was dropped with its transaction.
        answer.await.map_err(|_| gone())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A writer that panicked answered nobody, and there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

/// Writes until nobody can ask any more, or until the storage fails.
///
/// What a failed flush left on disk is unknown and trying again would hide it, so the writer then ends: every later
/// write finds it gone and answers [`Error::Unavailable`].
fn run(database: &Database, clock: &Clock, mut waiting: mpsc::Receiver<Job>) {
    while let Some(first) = waiting.blocking_recv() {
        let mut group = vec![first];
        while group.len() < GROUP_MAX
            && let Ok(job) = waiting.try_recv()
        {
            group.push(job);
        }
        match commit(database, clock, group) {
            Ok(answers) => answers.into_iter().for_each(|answer| answer()),
            Err(error) => {
                tracing::error!(%error, "The store failed and takes no more writes: check the disk, then restart");
                return;
            }
        }
    }
}

fn commit(database: &Database, clock: &Clock, group: Vec<Job>) -> Result<Vec<Answer>, Box<redb::Error>> {
    let transaction = database.begin_write().map_err(boxed)?;
    let mut tables = Tables::open(&transaction, clock.now_ms()).map_err(Box::new)?;
    let answers = group.into_iter().map(|job| job(&mut tables)).collect::<Result<Vec<_>, _>>()?;
    if tables.changes == 0 {
        // Conflicts, checks and empty queues changed nothing that would need to reach the disk.
        drop(tables);
        transaction.abort().map_err(boxed)?;
    } else {
        tables.finish().map_err(Box::new)?;
        drop(tables);
        transaction.commit().map_err(boxed)?;
    }
    Ok(answers)
}

fn boxed(error: impl Into<redb::Error>) -> Box<redb::Error> {
    Box::new(error.into())
}
