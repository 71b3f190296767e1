//! Ids that two sources may have: a file and the one that replaces it are both there for a moment.

use std::ops::RangeInclusive;

use crate::RecordId;

/// Ranges of ids that more than one source may have, in order.
#[derive(Debug, Default)]
pub(crate) struct Overlaps {
    ranges: Vec<RangeInclusive<RecordId>>,
}

impl Overlaps {
    /// The overlaps of sources with these first and last ids.
    pub(crate) fn of(sources: impl IntoIterator<Item = (RecordId, RecordId)>) -> Self {
        let mut sources: Vec<_> = sources.into_iter().collect();
        sources.sort_unstable();
        let mut ranges: Vec<RangeInclusive<RecordId>> = Vec::new();
        let mut reached: Option<RecordId> = None;
        for (first, last) in sources {
            if let Some(reached) = reached.filter(|reached| *reached >= first) {
                let shared = reached.min(last);
                match ranges.pop() {
                    Some(before) if *before.end() >= first => {
                        ranges.push(*before.start()..=shared.max(*before.end()));
                    }
                    before => ranges.extend(before.into_iter().chain([first..=shared])),
                }
            }
            reached = reached.max(Some(last));
        }
        Self { ranges }
    }

    /// Returns true if more than one source may have this id.
    pub(crate) fn has(&self, id: RecordId) -> bool {
        let place = self.ranges.partition_point(|range| *range.end() < id);
        self.ranges.get(place).is_some_and(|range| *range.start() <= id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The milliseconds from 0 to 19 that two of these sources may have.
    fn shared(sources: &[(u64, u64)]) -> Vec<u64> {
        let ids = |(first, last): &(u64, u64)| (RecordId::first(*first), RecordId::last(*last));
        let overlaps = Overlaps::of(sources.iter().map(ids));
        (0..20).filter(|millis| overlaps.has(RecordId::new(*millis, 7, 7))).collect()
    }

    #[test]
    fn what_two_sources_may_have_is_told_from_what_only_one_may_have() {
        assert!(shared(&[]).is_empty());
        assert!(shared(&[(1, 3), (4, 6)]).is_empty());
        assert_eq!(shared(&[(1, 4), (4, 6)]), [4]);
        assert_eq!(shared(&[(5, 7), (1, 9)]), [5, 6, 7]);
        assert_eq!(shared(&[(1, 19), (2, 3), (8, 9), (9, 11), (15, 25)]), [2, 3, 8, 9, 10, 11, 15, 16, 17, 18, 19]);
        assert_eq!(shared(&[(1, 3), (1, 3), (1, 5), (5, 6)]), [1, 2, 3, 5]);
    }
}
