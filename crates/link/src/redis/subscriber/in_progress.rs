//! Entries that are being worked on, and the number of times that work on an entry ended without a result.

use std::{collections::HashSet, num::NonZeroUsize, sync::Arc};

use lru::LruCache;
use parking_lot::Mutex;

/// Maximum number of entries whose failures are remembered.
const FAILED_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);

/// The entries that are being worked on.
#[derive(Clone)]
pub(super) struct InProgress(Arc<Mutex<EntriesInProgress>>);

struct EntriesInProgress {
    ids: HashSet<String>,
    /// Number of times that work on an entry ended without a result.
    failures: LruCache<String, u32>,
}

/// An entry that is being worked on, until this is dropped.
pub(super) struct Held {
    id: String,
    is_done: bool,
    in_progress: InProgress,
}

impl InProgress {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(EntriesInProgress { ids: HashSet::new(), failures: LruCache::new(FAILED_MAX) })))
    }

    /// Begins work on an entry; `None` if somebody works on it already.
    pub(super) fn hold(&self, id: String) -> Option<Held> {
        let is_new = self.0.lock().ids.insert(id.clone());
        is_new.then(|| Held { id, is_done: false, in_progress: self.clone() })
    }

    /// Returns the number of entries that are being worked on.
    pub(super) fn count(&self) -> usize {
        self.0.lock().ids.len()
    }

    pub(super) fn ids(&self) -> Vec<String> {
        self.0.lock().ids.iter().cloned().collect()
    }
}

impl Held {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the number of times that work on the entry has ended without a result.
    pub(super) fn failures(&self) -> u32 {
        self.in_progress.0.lock().failures.get(&self.id).copied().unwrap_or_default()
    }

    /// Ends the work on an entry that has been acknowledged.
    pub(super) fn finish(mut self) {
        self.is_done = true;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.in_progress.0.lock();
        state.ids.remove(&self.id);
        if self.is_done {
            state.failures.pop(&self.id);
        } else {
            *state.failures.get_or_insert_mut(self.id.clone(), || 0) += 1;
        }
    }
}
