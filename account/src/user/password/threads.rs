//! A small, fixed pool of threads that verify passwords.
//!
//! Verification takes 19 MiB, which the allocator keeps per thread. On tokio's blocking threads, a flood of logins
//! would leave that much on every one of them.

use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
};

use crate::{Error, Result};

type Work = Box<dyn FnOnce() + Send>;

/// The threads. They end when this is dropped.
#[derive(Clone)]
pub(super) struct Threads {
    work: mpsc::SyncSender<Work>,
}

impl Threads {
    /// Starts `count` threads.
    pub(super) fn start(count: usize) -> Result<Self> {
        let (work, waiting) = mpsc::sync_channel(count);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..count {
            let waiting = Arc::clone(&waiting);
            let thread = thread::Builder::new().name("password".to_owned());
            thread.spawn(move || run(&waiting)).map_err(|_| Error::Crypto("start a thread for passwords"))?;
        }
        Ok(Self { work })
    }

    /// Runs `work` on one of the threads. The caller must limit concurrency to the number of threads.
    pub(super) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let (done, answer) = tokio::sync::oneshot::channel();
        let work = Box::new(move || {
            // The caller may have stopped waiting.
            _ = done.send(work());
        });
        let lost = || Error::Crypto("check a password");
        self.work.try_send(work).map_err(|_| lost())?;
        answer.await.map_err(|_| lost())
    }
}

fn run(waiting: &Mutex<mpsc::Receiver<Work>>) {
    loop {
        let next = match waiting.lock() {
            Ok(waiting) => waiting.recv(),
            Err(_) => return,
        };
        let Ok(work) = next else { return };
        work();
    }
}
