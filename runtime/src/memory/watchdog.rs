//! Enforces the wall-clock limit: revokes access to the memory of an overdue call.
//!
//! This is a backstop: fuel normally ends a call long before, but does not notice, for example, a stalled machine. It
//! costs each call two uncontended locks. The guest has no bulk memory instructions, so only guest code can touch the
//! revoked memory, which is an ordinary trap.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::memory::mapping::Mapping;

/// Watches the calls of one engine; its thread ends when it is dropped.
pub(crate) struct Watchdog {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// True while the thread waits for a call to be armed.
    asleep: AtomicBool,
    watched: Mutex<Watched>,
    wake: Condvar,
}

#[derive(Default)]
struct Watched {
    mappings: Vec<Weak<Mapping>>,
    ending: bool,
}

impl Watchdog {
    /// Starts the thread, which checks every `tick`.
    pub(crate) fn start(tick: Duration) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let watching = Arc::clone(&shared);
        let thread = thread::Builder::new().name("sandbox-watchdog".into()).spawn(move || watching.run(tick))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Watches the calls in `mapping` from now on.
    pub(crate) fn watch(&self, mapping: &Arc<Mapping>) {
        let mut watched = self.shared.lock();
        watched.mappings.retain(|mapping| mapping.strong_count() > 0);
        watched.mappings.push(Arc::downgrade(mapping));
    }

    /// Lets a call in `mapping` run until `deadline`.
    pub(crate) fn arm(&self, mapping: &Mapping, deadline: Instant) {
        mapping.arm(deadline);
        // Either the thread sees the armed call before it sleeps, or this sees that it sleeps.
        fence(Ordering::SeqCst);
        if self.shared.asleep.load(Ordering::Relaxed) {
            let _watched = self.shared.lock();
            self.shared.asleep.store(false, Ordering::Relaxed);
            self.shared.wake.notify_one();
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.lock().ending = true;
        self.shared.wake.notify_one();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the sandbox watchdog panicked");
        }
    }
}

impl Shared {
    fn run(&self, tick: Duration) {
        let mut watched = self.lock();
        while !watched.ending {
            if self.check(&watched) || !self.may_sleep(&watched) {
                watched =
                    self.wake.wait_timeout(watched, tick).map_or_else(|e| e.into_inner().0, |(watched, _)| watched);
            } else {
                watched = self.wake.wait(watched).unwrap_or_else(PoisonError::into_inner);
                self.asleep.store(false, Ordering::Relaxed);
            }
        }
    }

    /// Announces that the thread is about to sleep; false if a call was armed meanwhile.
    fn may_sleep(&self, watched: &Watched) -> bool {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let used = self.check(watched);
        if used {
            self.asleep.store(false, Ordering::Relaxed);
        }
        !used
    }

    /// Revokes access for overdue calls; true if any call was armed since the last check.
    fn check(&self, watched: &Watched) -> bool {
        let now = Instant::now();
        let mut used = false;
        for mapping in watched.mappings.iter().filter_map(Weak::upgrade) {
            match mapping.revoke_if_overdue(now) {
                Ok(armed) => used |= armed,
                Err(error) => tracing::error!(%error, "cannot stop an overdue function"),
            }
        }
        used
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        // No code that holds this lock leaves it inconsistent, so a poisoned lock is safe to use.
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
