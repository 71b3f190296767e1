//! Threads for long reads, so that neither the runtime nor other work on its blocking threads waits.

use std::{sync::Arc, thread};

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::Error;

/// Number of threads.
const THREADS: usize = 4;
/// Maximum number of reads that wait for a thread; beyond that, callers wait.
const WAITING_MAX: usize = 1024;

type Job = Box<dyn FnOnce() + Send>;

/// The threads; they end when this is dropped and the waiting reads are done.
pub(super) struct Readers {
    jobs: mpsc::Sender<Job>,
}

impl Readers {
    /// Starts the threads.
    pub(super) fn start() -> Result<Self, Error> {
        let (jobs, waiting) = mpsc::channel(WAITING_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        for number in 0..THREADS {
            let waiting = Arc::clone(&waiting);
            let thread = thread::Builder::new().name(format!("store-reader-{number}")).spawn(move || run(&waiting));
            thread.map_err(|error| Error::unavailable("start a reader of the store", error))?;
        }
        Ok(Self { jobs })
    }

    /// Runs `read` on one of the threads, unless its caller has given up before.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        what: &'static str,
        read: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, result) = oneshot::channel();
        let job = move || {
            if !sender.is_closed() {
                // Its caller may give up meanwhile.
                _ = sender.send(read());
            }
        };
        let gone = || Error::Unavailable { what, source: None };
        self.jobs.send(Box::new(job)).await.map_err(|_| gone())?;
        result.await.map_err(|_| gone())?
    }
}

/// Runs waiting reads until there will be no more.
fn run(waiting: &Mutex<mpsc::Receiver<Job>>) {
    loop {
        // One thread waits for the next job, the others for it.
        let job = waiting.lock().blocking_recv();
        let Some(job) = job else { return };
        job();
    }
}
