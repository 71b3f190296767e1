//! The account service's responses of the last few seconds.
//!
//! Not `moka`: it reads the machine's clock, and here the clock is given.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::OnceCell;
use types::Timestamp;

/// How long a response is used: a deleted key or a lost right takes effect within this time.
///
/// Together with the MQTT server's checks of open connections it stays below the 5 seconds that revoking may take.
const AGE_MAX: Duration = Duration::from_secs(2);
/// Maximum number of entries; when there are more, the oldest is removed.
const ENTRIES_MAX: usize = 4096;

/// A response of the account service; empty while a caller fetches it and others wait.
pub(super) type Cell<V> = Arc<OnceCell<V>>;

/// Recent responses by key, refusals included.
pub(super) struct Cache<K, V> {
    entries: Mutex<HashMap<K, Entry<V>>>,
}

struct Entry<V> {
    created: Timestamp,
    cell: Cell<V>,
}

impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        Self { entries: Mutex::default() }
    }
}

impl<K: Clone + Eq + Hash, V> Cache<K, V> {
    /// The cell of a key, which may still be empty.
    pub(super) fn cell(&self, key: &K, now: Timestamp) -> Cell<V> {
        let mut entries = self.lock();
        if let Some(entry) = entries.get(key).filter(|entry| entry.is_fresh(now)) {
            return Arc::clone(&entry.cell);
        }
        make_room(&mut entries, now);
        let cell = Cell::default();
        entries.insert(key.clone(), Entry { created: now, cell: Arc::clone(&cell) });
        cell
    }

    pub(super) fn remove(&self, key: &K, cell: &Cell<V>) {
        let mut entries = self.lock();
        if entries.get(key).is_some_and(|entry| Arc::ptr_eq(&entry.cell, cell) && !cell.initialized()) {
            entries.remove(key);
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Entry<V>>> {
        // Every change of the map is one call, so a panic cannot have left it inconsistent.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> Entry<V> {
    fn is_fresh(&self, now: Timestamp) -> bool {
        // An entry from the future was created before the clock was set back.
        self.created <= now && now.since(self.created) < AGE_MAX
    }
}

fn make_room<K: Clone + Eq + Hash, V>(entries: &mut HashMap<K, Entry<V>>, now: Timestamp) {
    if entries.len() < ENTRIES_MAX {
        return;
    }
    entries.retain(|_, entry| entry.is_fresh(now));
    if entries.len() >= ENTRIES_MAX
        && let Some(oldest) = entries.iter().min_by_key(|(_, entry)| entry.created).map(|(key, _)| key.clone())
    {
        entries.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn shares_a_cell_until_it_is_too_old() {
        let cache: Cache<usize, ()> = Cache::default();
        let start = Timestamp::from_millis(1_000_000);
        let first = cache.cell(&1, start);
        assert!(Arc::ptr_eq(&first, &cache.cell(&1, start.plus(Duration::from_millis(1_999)))));
        assert!(!Arc::ptr_eq(&first, &cache.cell(&2, start)));
        assert!(!Arc::ptr_eq(&first, &cache.cell(&1, start.plus(AGE_MAX))));
        let later = cache.cell(&3, start.plus(Duration::from_secs(3600)));
        assert!(!Arc::ptr_eq(&later, &cache.cell(&3, start)), "the clock was set back");
    }

    #[test]
    fn never_holds_more_than_the_limit() {
        let cache: Cache<usize, ()> = Cache::default();
        for number in 0..ENTRIES_MAX + 10 {
            cache.cell(&number, Timestamp::from_millis(number as i64 / 10));
        }
        assert_eq!(cache.len(), ENTRIES_MAX);
        let cell = cache.cell(&0, Timestamp::from_millis(60_000));
        assert_eq!(cache.len(), 1);
        cache.remove(&0, &Cell::default());
        assert_eq!(cache.len(), 1, "a different cell");
        cache.remove(&0, &cell);
        assert_eq!(cache.len(), 0);
    }
}
