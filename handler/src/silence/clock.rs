//! Tells when the clock has jumped: what was heard before it then seems to be long ago, or to come.

use std::{sync::Arc, time::Duration};

use types::{Clock, Timestamp};

/// Difference between the clock and the time that has passed, from which on the clock has jumped.
const JUMP_MIN: Duration = Duration::from_secs(10);

/// Returns the time that has passed since any moment, whatever the clock shows.
pub(super) type Monotonic = Arc<dyn Fn() -> Duration + Send + Sync>;

/// A clock that is compared with the time that passes.
pub(super) struct WatchedClock {
    clock: Arc<dyn Clock>,
    monotonic: Monotonic,
    started: Duration,
    looked: (Timestamp, Duration),
}

impl WatchedClock {
    pub(super) fn new(clock: Arc<dyn Clock>, monotonic: Monotonic) -> Self {
        let (now, passed) = (clock.now(), monotonic());
        Self { clock, monotonic, started: passed, looked: (now, passed) }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time for which it has been watched.
    pub(super) fn age(&self) -> Duration {
        (self.monotonic)().saturating_sub(self.started)
    }

    /// Counts that time from now on.
    pub(super) fn restart(&mut self) {
        self.started = (self.monotonic)();
    }

    /// A limit to what may be done from now on.
    pub(super) fn limit(&self, time: Duration) -> TimeLimit {
        TimeLimit { monotonic: self.monotonic.clone(), end: (self.monotonic)() + time }
    }

    /// Returns true if the clock has jumped since the last look.
    pub(super) fn has_jumped(&mut self) -> bool {
        let (now, passed) = (self.clock.now(), (self.monotonic)());
        let (before, passed_before) = std::mem::replace(&mut self.looked, (now, passed));
        let expected = before.plus(passed.saturating_sub(passed_before));
        now.since(expected).max(expected.since(now)) >= JUMP_MIN
    }
}

/// A limit in time, whatever the clock shows.
pub(super) struct TimeLimit {
    monotonic: Monotonic,
    end: Duration,
}

impl TimeLimit {
    /// Returns true if no time is left.
    pub(super) fn is_over(&self) -> bool {
        (self.monotonic)() >= self.end
    }
}

#[cfg(test)]
mod tests {
    use testing::ManualClock;

    use super::*;

    #[test]
    fn a_clock_jumps_if_less_or_more_has_passed() {
        let clock = ManualClock::new();
        let mut watched = WatchedClock::new(clock.clone(), clock.monotonic());
        clock.advance(Duration::from_secs(86_400));
        clock.jump(Duration::from_secs(9));
        assert!(!watched.has_jumped(), "time servers correct it a little");
        clock.jump(Duration::from_secs(10));
        assert!(watched.has_jumped() && !watched.has_jumped());
        clock.set_back(Duration::from_secs(10));
        assert!(watched.has_jumped() && !watched.has_jumped());
        assert_eq!(watched.age(), Duration::from_secs(86_400));
        watched.restart();
        assert_eq!(watched.age(), Duration::ZERO);
    }
}
