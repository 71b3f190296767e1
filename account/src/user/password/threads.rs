//! A thread pool for password checks.
//!
//! A check takes 19 MiB. The allocator keeps freed memory per thread, so on the threads that all blocking work shares,
//! a flood of logins would leave that much on every thread.

use std::{
    sync::{Arc, mpsc},
    thread,
};

use parking_lot::Mutex;
use server::system::lower_priority;

use crate::{Error, Result};

/// Niceness added to that of the process: logins must not delay users who are already logged in.
const NICENESS: i32 = 5;

type Work = Box<dyn FnOnce() + Send>;

/// The pool. Its threads end when it is dropped.
#[derive(Clone)]
pub(super) struct ThreadPool {
    work: mpsc::SyncSender<Work>,
}

impl ThreadPool {
    pub(super) fn start(count: usize) -> Result<Self> {
        let (work, waiting) = mpsc::sync_channel(count);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..count {
            let waiting = Arc::clone(&waiting);
            let thread = thread::Builder::new().name("password".to_owned());
            let run = move || {
                lower_priority(NICENESS);
                run(&waiting);
            };
            thread.spawn(run).map_err(|_| Error::Crypto("start a thread for passwords"))?;
        }
        Ok(Self { work })
    }

    /// Runs `work` on a thread. Callers must not submit more work than there are threads.
    pub(super) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let (done, response) = tokio::sync::oneshot::channel();
        let work = Box::new(move || {
            // The caller may have been cancelled.
            _ = done.send(work());
        });
        let lost = || Error::Crypto("check a password");
        self.work.try_send(work).map_err(|_| lost())?;
        response.await.map_err(|_| lost())
    }
}

fn run(waiting: &Mutex<mpsc::Receiver<Work>>) {
    loop {
        let Ok(work) = waiting.lock().recv() else { return };
        work();
    }
}
