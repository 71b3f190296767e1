//! Tells whether several owners call at the moment, which decides how many requests of one may run.

use std::sync::Arc;

/// Number of starts among which there must be one of another owner.
const STARTS: u64 = 1024;

/// Counts the requests that have started, instead of reading a clock.
#[derive(Default)]
pub(super) struct RecentOwners {
    starts: u64,
    latest: Option<Arc<str>>,
    /// The last start of anybody but the latest.
    of_another: Option<u64>,
}

impl RecentOwners {
    /// Notes that a request of this owner starts.
    pub(super) fn note_start(&mut self, owner: &Arc<str>) {
        if self.latest.as_ref().is_some_and(|latest| latest != owner) {
            self.of_another = Some(self.starts);
        }
        self.starts += 1;
        self.latest = Some(Arc::clone(owner));
    }

    /// Returns true if a single owner has started all of the last requests.
    pub(super) fn is_only_one(&self) -> bool {
        self.of_another.is_none_or(|last| self.starts - last > STARTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_alone_when_the_others_have_long_stopped() {
        let (mut recent, [a, b]) = (RecentOwners::default(), ["a", "b"].map(Arc::from));
        (0..10).for_each(|_| recent.note_start(&a));
        assert!(recent.is_only_one());
        recent.note_start(&b);
        assert!(!recent.is_only_one());
        (0..STARTS - 1).for_each(|_| recent.note_start(&a));
        assert!(!recent.is_only_one());
        (0..2).for_each(|_| recent.note_start(&a));
        assert!(recent.is_only_one());
    }
}
