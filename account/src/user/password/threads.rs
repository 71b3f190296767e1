//! The threads that passwords are checked on: few, and always the same.
//!
//! A check takes 19 MiB. The allocator keeps what a thread had, so on the threads that all blocking work shares, a
//! flood of logins would leave that much on every one of them.

use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
};

use crate::{Error, Result};

type Work = Box<dyn FnOnce() + Send>;

/// The threads; they end with this value.
#[derive(Clone)]
pub(super) struct Threads {
    work: mpsc::SyncSender<Work>,
}

impl Threads {
    /// Starts this many.
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

    /// Does this on one of them. Whoever calls sees to it that no more comes than there are threads.
    pub(super) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let (done, answer) = tokio::sync::oneshot::channel();
        let work = Box::new(move || {
            // Whoever asked may be gone.
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
