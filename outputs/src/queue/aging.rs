//! Finds messages that are too old, by the clock, once it can be trusted.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;
use types::{Clock, Timestamp};

/// Age at which messages and dead letters are dropped.
const AGE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Time that an application is remembered for which nothing was queued.
const IDLE_MAX: Duration = Duration::from_secs(14 * 24 * 3600);
/// Time that the clock has to run evenly, after a start or a jump, before anything is too old.
pub(crate) const STEADY: Duration = Duration::from_secs(600);
/// Maximum difference between the clock and the time that has passed since the last reading; a thousandth of that time
/// is added.
const JUMP: Duration = Duration::from_secs(60);

/// Limits of age, by a clock that is checked for jumps.
pub(crate) struct Aging {
    clock: Arc<dyn Clock>,
    last: Mutex<Reading>,
}

/// Time by the clock at a monotonic instant.
struct Reading {
    time: Timestamp,
    at: Instant,
    /// Start of the time for which it has run evenly.
    even_since: Instant,
}

impl Aging {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let (time, at) = (clock.now(), Instant::now());
        Self { clock, last: Mutex::new(Reading { time, at, even_since: at }) }
    }

    /// Messages from before this time are too old; none are while the clock cannot be trusted.
    pub(crate) fn messages_before(&self) -> Option<Timestamp> {
        self.before(AGE_MAX)
    }

    /// Applications for which nothing was queued since this time are forgotten.
    pub(crate) fn applications_before(&self) -> Option<Timestamp> {
        self.before(IDLE_MAX)
    }

    fn before(&self, age: Duration) -> Option<Timestamp> {
        let (time, at) = (self.clock.now(), Instant::now());
        let mut last = self.last.lock();
        let passed = at.duration_since(last.at);
        let expected = last.time.as_millis().saturating_add(millis(passed));
        if time.as_millis().abs_diff(expected) > (JUMP + passed / 1000).as_millis() as u64 {
            last.even_since = at;
        }
        (last.time, last.at) = (time, at);
        let is_steady = at.duration_since(last.even_since) >= STEADY;
        is_steady.then(|| Timestamp::from_millis(time.as_millis().saturating_sub(millis(age))))
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use testing::ManualClock;
    use tokio::time::advance;

    use super::*;

    /// Lets time pass, which the clock shows.
    async fn pass(clock: &ManualClock, duration: Duration) {
        advance(duration).await;
        clock.advance(duration);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_too_old_until_the_clock_has_run_evenly_for_a_while() {
        let clock = ManualClock::new();
        let aging = Aging::new(clock.clone());
        assert_eq!(aging.messages_before(), None, "after a start");
        pass(&clock, STEADY).await;
        let before = aging.messages_before().unwrap();
        assert_eq!(before.plus(AGE_MAX), clock.now());
        for jump in [AGE_MAX, JUMP * 2] {
            clock.advance(jump);
            assert_eq!(aging.messages_before(), None, "after a jump");
            clock.set_back(jump);
            pass(&clock, STEADY / 2).await;
            assert_eq!(aging.messages_before(), None, "after the way back");
            pass(&clock, STEADY).await;
            assert!(aging.messages_before().is_some());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_a_little_fast_runs_evenly() {
        let clock = ManualClock::new();
        let aging = Aging::new(clock.clone());
        pass(&clock, 100 * STEADY).await;
        clock.advance(STEADY / 10);
        assert!(aging.messages_before().is_some());
    }
}
