//! Uplinks of many devices at once, those of a device one after the other.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Items that wait for those before them, by device. The owner limits their number.
pub(super) struct Lanes<K, T>(Mutex<HashMap<K, VecDeque<T>>>);

impl<K: Eq + Hash + Clone, T> Lanes<K, T> {
    /// Adds an item behind those of the same device. Returns true if there were none: then the caller begins to take
    /// items.
    pub(super) fn add(&self, key: &K, item: T) -> bool {
        let mut waiting = self.lock();
        let is_first = !waiting.contains_key(key);
        waiting.entry(key.clone()).or_default().push_back(item);
        is_first
    }

    /// Takes the next item of a device; none if there are no more, and another caller may begin.
    pub(super) fn next(&self, key: &K) -> Option<T> {
        let mut waiting = self.lock();
        let next = waiting.get_mut(key).and_then(VecDeque::pop_front);
        if next.is_none() {
            waiting.remove(key);
        }
        next
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, VecDeque<T>>> {
        // Each change is complete when the lock is released, so a panic elsewhere cannot leave it half made.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, T> Default for Lanes<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_takes_the_items_of_a_device_at_a_time() {
        let lanes = Lanes::default();
        assert!(lanes.add(&"a", 1));
        assert!(!lanes.add(&"a", 2));
        assert!(lanes.add(&"b", 3));
        assert_eq!((lanes.next(&"a"), lanes.next(&"a")), (Some(1), Some(2)));
        assert!(!lanes.add(&"a", 4), "the one who took 2 is still busy");
        assert_eq!((lanes.next(&"a"), lanes.next(&"a")), (Some(4), None));
        assert!(lanes.add(&"a", 5), "nobody is busy any more");
    }
}
