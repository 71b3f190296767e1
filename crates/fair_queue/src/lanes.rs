//! Lanes: work on many devices at once, and on the items of one device one after the other.

use std::{
    borrow::Borrow,
    collections::{HashMap, VecDeque},
    hash::Hash,
};

use parking_lot::Mutex;

/// The waiting items of each device that has any. Whoever adds items bounds their number.
pub struct Lanes<K, T>(Mutex<HashMap<K, VecDeque<T>>>);

impl<K: Eq + Hash, T> Lanes<K, T> {
    /// Adds an item behind those of the same device. True if nobody works on that lane: then the caller begins to, with
    /// [`Self::next`].
    pub fn add<Q>(&self, device: &Q, item: T) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let mut waiting = self.0.lock();
        if let Some(lane) = waiting.get_mut(device) {
            lane.push_back(item);
            return false;
        }
        waiting.insert(device.to_owned(), VecDeque::from([item]));
        true
    }

    /// Takes the next item of a device; none if there are no more, and another caller may begin.
    pub fn next<Q>(&self, device: &Q) -> Option<T>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let mut waiting = self.0.lock();
        let next = waiting.get_mut(device).and_then(VecDeque::pop_front);
        if next.is_none() {
            waiting.remove(device);
        }
        next
    }

    /// Returns true if nobody works on any lane.
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
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
    fn one_works_on_a_lane_at_a_time() {
        let lanes: Lanes<String, u32> = Lanes::default();
        assert!(lanes.add("a", 1));
        assert!(!lanes.add("a", 2));
        assert!(lanes.add("b", 3));
        assert_eq!((lanes.next("a"), lanes.next("a")), (Some(1), Some(2)));
        assert!(!lanes.add("a", 4), "the one who took 2 is still busy");
        assert_eq!((lanes.next("a"), lanes.next("a")), (Some(4), None));
        assert!(lanes.add("a", 5), "nobody is busy any more");
        assert!(!lanes.is_empty());
    }

    #[test]
    fn lanes_without_items_take_no_memory() {
        let lanes: Lanes<String, u32> = Lanes::default();
        assert!(lanes.add("a", 1));
        assert_eq!((lanes.next("a"), lanes.next("a")), (Some(1), None));
        assert!(lanes.is_empty());
    }
}
