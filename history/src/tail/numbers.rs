//! Gives each record an id of its own, also when the clock is set back.

use crate::RecordId;

/// Gives each record an id of its own, also when the clock is set back.
#[derive(Debug)]
pub(crate) struct Numbers {
    writer: u32,
    last: RecordId,
    /// The number with which a millisecond begins.
    first: u32,
    /// The highest number that was given.
    highest: u32,
}

impl Numbers {
    pub(crate) fn new(writer: u32) -> Self {
        Self { writer, last: RecordId::new(0, writer, 0), first: 0, highest: 0 }
    }

    /// The id of a record that comes now.
    pub(crate) fn next(&mut self, now: u64) -> RecordId {
        if now < self.last.millis {
            // Times repeat: numbers that were given before must not.
            self.first = self.highest.saturating_add(1);
        }
        let number = if now == self.last.millis { self.last.number.saturating_add(1) } else { self.first };
        self.highest = self.highest.max(number);
        self.last = RecordId::new(now, self.writer, number);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_never_repeat_although_the_clock_is_set_back() {
        let mut numbers = Numbers::new(7);
        let times = [5, 5, 5, 6, 7, 5, 5, 6, 4, 5, 5, 6, 6, 7, 8];
        let ids: BTreeSet<_> = times.map(|now| numbers.next(now)).into();
        assert_eq!(ids.len(), times.len());
    }

    #[test]
    fn a_clock_that_goes_on_needs_small_numbers() {
        let mut numbers = Numbers::new(7);
        assert_eq!([1, 1, 2, 2].map(|now| numbers.next(now).number), [0, 1, 0, 1]);
    }
}
