//! A concurrency limit that is fair between owners: none of them can use all of what they share.
//!
//! Not a semaphore: the more is in use, the less a single owner may hold.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Counts the permits of each owner.
#[derive(Debug, Default)]
pub struct ConcurrencyLimit {
    held: Mutex<HashMap<Arc<str>, usize>>,
}

/// Permission for one message, task or connection of an owner, until it is dropped.
#[derive(Debug)]
pub struct Permit {
    limit: Arc<ConcurrencyLimit>,
    owner: Arc<str>,
}

impl ConcurrencyLimit {
    /// A permit for `owner`; none if it holds as many as there is `room` left for everybody.
    pub fn acquire(self: &Arc<Self>, owner: &str, room: usize) -> Option<Permit> {
        let mut held = self.lock();
        if held.get(owner).copied().unwrap_or(0) >= room {
            return None;
        }
        let owner = held.get_key_value(owner).map_or_else(|| Arc::from(owner), |(owner, _)| Arc::clone(owner));
        *held.entry(Arc::clone(&owner)).or_insert(0) += 1;
        Some(Permit { limit: Arc::clone(self), owner })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        // Nothing that runs under this lock leaves it half changed.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut held = self.limit.lock();
        if let Some(permits) = held.get_mut(&self.owner) {
            *permits -= 1;
            if *permits == 0 {
                held.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_that_holds_much_leaves_room_for_others() {
        let (limit, room) = (Arc::new(ConcurrencyLimit::default()), 16);
        let mut held: Vec<Permit> = Vec::new();
        let mut acquire = |owner| {
            let before = held.len();
            while let Some(permit) = limit.acquire(owner, room - held.len()) {
                held.push(permit);
            }
            held.len() - before
        };
        assert_eq!(["a", "b", "c", "d", "a"].map(&mut acquire), [8, 4, 2, 1, 0]);
        assert_eq!(["e", "f"].map(&mut acquire), [1, 0]);
        held.truncate(4);
        assert_eq!(limit.lock().len(), 1, "an owner without permits is forgotten");
        held.clear();
        assert!(limit.lock().is_empty());
    }

    #[test]
    fn a_refused_owner_leaves_no_entry() {
        let limit = Arc::new(ConcurrencyLimit::default());
        assert!(limit.acquire("a", 0).is_none());
        assert!(limit.lock().is_empty());
    }
}
