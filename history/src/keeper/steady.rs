//! Tells if the clock can be trusted: records that seem old by a clock that has jumped are not deleted.

/// Minimum number of consecutive looks that find that the clock runs evenly: some ten minutes.
const LOOKS_MIN: u32 = 10;
/// Looks that follow each other faster do not count, in milliseconds.
const APART_MIN: u64 = 30_000;
/// If more has passed between two looks, the clock has jumped, in milliseconds.
const APART_MAX: u64 = 600_000;

/// Compares what the clock shows from look to look.
#[derive(Debug, Default)]
pub(crate) struct Steadiness {
    last: u64,
    even: u32,
}

impl Steadiness {
    /// Takes note of what the clock shows.
    pub(crate) fn look(&mut self, now: u64) {
        match now.checked_sub(self.last) {
            Some(..APART_MIN) => return,
            Some(..=APART_MAX) => self.even = self.even.saturating_add(1),
            _ => self.even = 0,
        }
        self.last = now;
    }

    pub(crate) fn is_steady(&self) -> bool {
        self.even >= LOOKS_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_believed_once_it_has_run_evenly() {
        let mut steadiness = Steadiness::default();
        let mut now = 1_790_000_000_000;
        let mut minutes = |steadiness: &mut Steadiness, count: u32, jump: u64| {
            now += jump;
            (0..count).for_each(|_| {
                now += 60_000;
                steadiness.look(now);
                steadiness.look(now + 1);
            });
            steadiness.is_steady()
        };
        assert!(!minutes(&mut steadiness, 10, 0));
        assert!(minutes(&mut steadiness, 1, 0));
        assert!(!minutes(&mut steadiness, 10, 1 << 40));
        assert!(minutes(&mut steadiness, 1, 0));
        steadiness.look(5);
        assert!(!steadiness.is_steady());
    }
}
