//! The best records while several threads look for them.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::{
    Error, Record, RecordId,
    query::best::{Best, BestRecords, Bound},
};

/// The best records while several threads look for them.
pub(crate) struct Shared<'a> {
    best: Mutex<Best>,
    oldest_first: bool,
    is_stopped: &'a AtomicBool,
}

impl<'a> Shared<'a> {
    pub(crate) fn new(best: Best, oldest_first: bool, is_stopped: &'a AtomicBool) -> Self {
        Self { best: Mutex::new(best), oldest_first, is_stopped }
    }

    /// [`Error::Stopped`] once nobody waits for the result.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_stopped.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }

    pub(crate) fn bound(&self) -> Bound {
        self.best.lock().bound()
    }

    /// Returns true if a record with an id from `first` to `last` could be among the best.
    pub(crate) fn admits_any(&self, first: RecordId, last: RecordId) -> bool {
        self.bound().admits_any(first, last)
    }

    /// Returns true if a record with any id could be.
    pub(crate) fn has_room(&self) -> bool {
        self.admits_any(RecordId::last(u64::MAX), RecordId::first(0))
    }

    /// Returns the maximum number of records.
    pub(crate) fn limit(&self) -> usize {
        self.best.lock().limit()
    }

    /// Puts ids into the order of the query.
    pub(crate) fn sort<T>(&self, ids: &mut [(RecordId, T)]) {
        ids.sort_unstable_by_key(|(id, _)| *id);
        if !self.oldest_first {
            ids.reverse();
        }
    }

    /// Adds a record if it is among the best.
    pub(crate) fn offer(&self, id: RecordId, record: impl FnOnce() -> Option<Record>) {
        if !self.bound().admits(id) {
            return;
        }
        if let Some(record) = record() {
            let mut best = self.best.lock();
            if best.bound().admits(id) {
                best.insert(record);
            }
        }
    }

    /// Puts the records in order.
    pub(crate) fn into_records(self) -> BestRecords {
        self.best.into_inner().into_records()
    }
}
