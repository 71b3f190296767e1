//! Tells whether the clock can be believed: entries that expired only by a wrong time must not be removed.

use parking_lot::Mutex;

use crate::{StoreClock, UnixMillis};

/// Tolerated difference of the clock from its expected time, in milliseconds: an hour.
const JUMP_MS: u64 = 3_600_000;
/// Time for which a clock that has jumped ahead must go on evenly before it is believed, in milliseconds: five minutes.
const STEADY_MS: u64 = 300_000;

/// Times that a commit needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommitTime {
    /// The time by the clock: entries that have expired by then do not exist for any call.
    pub(crate) now: UnixMillis,
    /// The time as far as it can be believed: entries that have expired by then may be removed.
    pub(crate) believed: UnixMillis,
}

/// Compares the clock with the monotonic clock, and at the start with the time of the last commit.
///
/// Entries that expired by a clock that has jumped ahead are hidden, and are there again if it goes back.
pub(crate) struct Steadiness {
    clock: StoreClock,
    state: Mutex<BelievedTime>,
}

/// A time, and the monotonic time at that moment, in milliseconds.
#[derive(Clone, Copy)]
struct Moment {
    wall: UnixMillis,
    monotonic: u64,
}

struct BelievedTime {
    /// The last time at which the clock could be believed.
    believed: Moment,
    /// The time that the clock jumped to, if it cannot be believed now.
    jumped: Option<Moment>,
}

impl CommitTime {
    /// A time that is believed.
    pub(crate) fn steady(now: UnixMillis) -> Self {
        Self { now, believed: now }
    }

    /// Returns true if the clock can be believed.
    pub(crate) fn is_steady(self) -> bool {
        self.now == self.believed
    }
}

impl Moment {
    /// Returns the time that the clock should show at this monotonic time.
    fn expected(self, monotonic: u64) -> UnixMillis {
        self.wall.saturating_add(monotonic.saturating_sub(self.monotonic))
    }
}

impl Steadiness {
    /// `last` is an earlier time that could be believed; `None` if it is not known.
    pub(crate) fn new(clock: StoreClock, last: Option<UnixMillis>) -> Self {
        let believed = Moment { wall: last.unwrap_or(0), monotonic: clock.monotonic_ms() };
        Self { clock, state: Mutex::new(BelievedTime { believed, jumped: None }) }
    }

    /// The time of a commit that is made now.
    pub(crate) fn look(&self) -> CommitTime {
        let seen = Moment { wall: self.clock.now_ms(), monotonic: self.clock.monotonic_ms() };
        self.state.lock().look(seen)
    }
}

impl BelievedTime {
    fn look(&mut self, seen: Moment) -> CommitTime {
        let expected = self.believed.expected(seen.monotonic);
        if seen.wall <= expected.saturating_add(JUMP_MS) {
            // An earlier time removes nothing too early, so it can be believed at once.
            if self.jumped.is_some() || seen.wall.saturating_add(JUMP_MS) < expected {
                *self = Self { believed: seen, jumped: None };
            }
            return CommitTime::steady(seen.wall);
        }
        let jumped = self.jumped.filter(|jumped| seen.wall.abs_diff(jumped.expected(seen.monotonic)) <= JUMP_MS);
        match jumped {
            Some(jumped) if seen.monotonic.saturating_sub(jumped.monotonic) >= STEADY_MS => {
                *self = Self { believed: seen, jumped: None };
                CommitTime::steady(seen.wall)
            }
            _ => {
                self.jumped = Some(jumped.unwrap_or(seen));
                CommitTime { now: seen.wall, believed: expected }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 24 * 3_600_000;
    const START_MS: u64 = 20_000 * DAY_MS;

    /// Returns the result of each look: the time by the clock and the time believed, in milliseconds.
    fn looks(last: Option<u64>, seen: &[(u64, u64)]) -> Vec<CommitTime> {
        let believed = Moment { wall: last.unwrap_or(0), monotonic: 0 };
        let mut state = BelievedTime { believed, jumped: None };
        seen.iter().map(|(wall, monotonic)| state.look(Moment { wall: *wall, monotonic: *monotonic })).collect()
    }

    #[test]
    fn a_clock_that_goes_evenly_is_believed() {
        let seen = [(START_MS, 0), (START_MS + DAY_MS, DAY_MS), (START_MS + 9 * DAY_MS, 9 * DAY_MS + 1000)];
        assert!(looks(Some(START_MS), &seen).into_iter().all(CommitTime::is_steady));
    }

    #[test]
    fn a_jump_ahead_is_believed_after_some_minutes_without_another_one() {
        let ahead = START_MS + 8 * DAY_MS;
        let seen = [
            (START_MS, 0),
            (ahead + 1000, 1000),
            (ahead + STEADY_MS, STEADY_MS),
            (ahead + 2 * DAY_MS + STEADY_MS + 1000, STEADY_MS + 1000),
            (ahead + 2 * DAY_MS + 2 * STEADY_MS + 1000, 2 * STEADY_MS + 1000),
        ];
        let looks = looks(Some(START_MS), &seen);
        assert_eq!(looks.iter().map(|time| time.is_steady()).collect::<Vec<_>>(), [true, false, false, false, true]);
        assert_eq!(looks[2].believed, START_MS + STEADY_MS);
    }

    #[test]
    fn a_start_long_after_the_last_commit_is_a_jump() {
        let later = START_MS + 401 * DAY_MS;
        let believed = |last| looks(last, &[(later, 0)])[0].believed;
        assert_eq!((believed(Some(START_MS)), believed(None)), (START_MS, 0));
    }

    #[test]
    fn a_clock_that_goes_back_is_believed_at_once() {
        for back in [START_MS, START_MS - 9 * DAY_MS] {
            let seen = [(START_MS + 8 * DAY_MS, 0), (back, 0), (back + 1, 1)];
            let looks = looks(Some(START_MS), &seen);
            assert_eq!(looks.iter().map(|time| time.is_steady()).collect::<Vec<_>>(), [false, true, true]);
        }
    }
}
