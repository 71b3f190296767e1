//! Who has how much waiting in a queue that many share, so that nobody fills it for others.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// How many places of one queue each owner holds.
#[derive(Default)]
pub(crate) struct Shares {
    held: Mutex<HashMap<Arc<str>, usize>>,
}

/// One place in the queue; free again when it is dropped.
pub(crate) struct Share {
    shares: Arc<Shares>,
    owner: Arc<str>,
}

impl Shares {
    /// A place for `owner`, who may hold as many as there is `room` left for others; `None` if it holds them already.
    pub(crate) fn take(self: &Arc<Self>, owner: &str, room: usize) -> Option<Share> {
        let mut held = self.lock();
        if held.get(owner).copied().unwrap_or(0) >= room {
            return None;
        }
        let owner = held.get_key_value(owner).map_or_else(|| Arc::from(owner), |(owner, _)| Arc::clone(owner));
        *held.entry(Arc::clone(&owner)).or_insert(0) += 1;
        Some(Share { shares: Arc::clone(self), owner })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        // Nothing that runs under this lock leaves it half changed.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.shares.lock();
        if let Some(places) = held.get_mut(&self.owner) {
            *places -= 1;
            if *places == 0 {
                held.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_holds_much_leaves_room_for_others() {
        let (shares, room) = (Arc::new(Shares::default()), 16);
        let mut held: Vec<Share> = Vec::new();
        let mut take = |owner| {
            let before = held.len();
            while let Some(share) = shares.take(owner, room - held.len()) {
                held.push(share);
            }
            held.len() - before
        };
        assert_eq!(["a", "b", "c", "d", "a"].map(&mut take), [8, 4, 2, 1, 0]);
        assert_eq!(["e", "f"].map(&mut take), [1, 0]);
        held.truncate(4);
        assert_eq!(shares.lock().len(), 1, "who holds nothing is forgotten");
        held.clear();
        assert!(shares.lock().is_empty());
    }

    #[test]
    fn a_full_queue_leaves_nobody_behind() {
        let shares = Arc::new(Shares::default());
        assert!(shares.take("a", 0).is_none());
        assert!(shares.lock().is_empty());
    }
}
