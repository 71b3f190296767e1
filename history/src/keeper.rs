//! Moves records from the tail to Parquet files, merges small files, and deletes what is too old or too much.

mod compact;
mod damaged;
mod own_files;
mod remove;
mod retain;
mod seal;
mod steady;
mod upload;

use std::{path::PathBuf, sync::Arc, time::Duration};

use parking_lot::{Condvar, Mutex};
use server::status::ErrorChain;
use types::Clock;

use self::steady::Steadiness;
use crate::{
    Error, Loss, OwnerOf,
    directory::removed,
    record::{loss::Losses, moment},
    settings::bounds::Bounds,
    tail::disk::Disk,
};

/// Interval between two passes.
const INTERVAL: Duration = Duration::from_secs(60);
/// In how many of these intervals it looks at all files although none is new.
const LOOKS: u32 = 60;

/// Keeps the directory in order.
pub(crate) struct Keeper {
    disk: Arc<Disk>,
    bounds: Bounds,
    clock: Arc<dyn Clock>,
    owner_of: OwnerOf,
    losses: Arc<Losses>,
    /// Random number of this process, new at each start.
    writer: u32,
    state: Mutex<PassState>,
    signal: Mutex<Signal>,
    changed: Condvar,
}

/// State that one pass leaves to the next.
#[derive(Default)]
struct PassState {
    steadiness: Steadiness,
    /// Passes until all files are looked at; zero also when there are new ones.
    passes: u32,
    /// Files that were merged so far.
    merged: u32,
    /// Losses that the log has.
    logged: [u64; Loss::ALL.len()],
}

#[derive(Default)]
struct Signal {
    is_wanted: bool,
    is_upload_wanted: bool,
    is_closed: bool,
}

impl Keeper {
    pub(crate) fn new(
        disk: Arc<Disk>,
        bounds: Bounds,
        (clock, owner_of): (Arc<dyn Clock>, OwnerOf),
        losses: Arc<Losses>,
        writer: u32,
    ) -> Self {
        let (state, signal) = (Mutex::default(), Mutex::default());
        Self { disk, bounds, clock, owner_of, losses, writer, state, signal, changed: Condvar::new() }
    }

    /// Works until it is closed.
    pub(crate) fn run(&self) {
        let mut was_failing = false;
        while self.wait() {
            let result = self.pass();
            if let Err(error) = &result
                && !was_failing
            {
                tracing::error!(error = %ErrorChain(error), "history cannot be put in order");
            }
            was_failing = result.is_err();
        }
    }

    /// Has it work soon.
    pub(crate) fn wake(&self) {
        self.signal.lock().is_wanted = true;
        self.changed.notify_all();
    }

    pub(crate) fn close(&self) {
        self.signal.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Waits for work. False once it is closed.
    fn wait(&self) -> bool {
        let is_idle = |signal: &mut Signal| !signal.is_wanted && !signal.is_closed;
        let mut signal = self.signal.lock();
        self.changed.wait_while_for(&mut signal, is_idle, INTERVAL);
        signal.is_wanted = false;
        !signal.is_closed
    }

    /// Does what is due: seals segments, merges files, deletes what is too old or too much.
    pub(crate) fn pass(&self) -> Result<(), Error> {
        let mut state = self.state.lock();
        let now = self.now();
        state.steadiness.look(now);
        self.log_losses(&mut state);
        let sealed = self.seal_due(&mut state, now);
        if state.passes > 0 {
            state.passes -= 1;
            return sealed;
        }
        let looked = self.look_at_files(&mut state, now);
        state.passes = if looked.is_ok() { LOOKS - 1 } else { 0 };
        sealed.and(looked)
    }

    /// Puts all files in order. What fails does not hold up the rest; the first error is returned.
    fn look_at_files(&self, state: &mut PassState, now: u64) -> Result<(), Error> {
        let removed = self.finish_removals(state);
        let change = self.disk.change()?;
        // What is too old or too much goes first, because merging needs room.
        let retained = self.retain(state, now);
        let compacted = self.compact(state, now);
        let removals = self.disk.removals();
        let forgotten =
            removals.and_then(|all| all.forget_old(&change, &self.disk.removed_dir(), now, self.removal_days()));
        self.wake_uploads();
        removed.and(retained).and(compacted).and(forgotten)
    }

    /// The same, and looks at all files.
    pub(crate) fn full_pass(&self) -> Result<(), Error> {
        self.state.lock().passes = 0;
        self.pass()
    }

    /// Returns the time that removals are remembered, in days: until no tail has the records any more, nor files in
    /// the bucket of a handler that is gone.
    fn removal_days(&self) -> u32 {
        removed::DAYS.max(self.bounds.days_max_of_all().saturating_add(2))
    }

    /// Says how many records were not kept, at most once in each interval.
    fn log_losses(&self, state: &mut PassState) {
        for (loss, logged) in Loss::ALL.into_iter().zip(&mut state.logged) {
            let count = self.losses.count(loss);
            if count > *logged {
                tracing::warn!(reason = loss.name(), records = count - *logged, "messages were not kept in history");
            }
            *logged = count;
        }
    }

    /// The name of a file while it is written.
    fn unfinished(path: &std::path::Path) -> PathBuf {
        path.with_extension(crate::sealed::write::UNFINISHED)
    }

    fn now(&self) -> u64 {
        moment::millis(self.clock.now())
    }
}
