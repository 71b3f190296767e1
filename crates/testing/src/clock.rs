//! A clock that stands still until a test moves it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use types::{Clock, Timestamp};

/// A clock that stands still until a test moves it.
#[derive(Debug)]
pub struct ManualClock {
    millis: AtomicI64,
    /// Reading of a monotonic clock.
    passed: AtomicI64,
}

impl ManualClock {
    /// A clock that shows 2026-09-21T13:33:20Z.
    pub fn new() -> Arc<Self> {
        Self::at(Timestamp::from_millis(1_790_000_000_000))
    }

    /// A clock that shows this time.
    pub fn at(start: Timestamp) -> Arc<Self> {
        Arc::new(Self { millis: AtomicI64::new(start.as_millis()), passed: AtomicI64::new(0) })
    }

    /// Lets time pass.
    pub fn advance(&self, duration: Duration) {
        self.passed.fetch_add(millis(duration), Ordering::SeqCst);
        self.jump(duration);
    }

    /// Moves the clock forward although no time passes, as a wrong time server does.
    pub fn jump(&self, duration: Duration) {
        self.millis.fetch_add(millis(duration), Ordering::SeqCst);
    }

    /// Moves the clock back.
    pub fn set_back(&self, duration: Duration) {
        self.millis.fetch_sub(millis(duration), Ordering::SeqCst);
    }

    /// Seconds since 1970.
    pub fn secs(&self) -> u64 {
        self.now().as_secs()
    }

    /// Milliseconds since 1970.
    pub fn millis(&self) -> u64 {
        self.millis.load(Ordering::SeqCst).try_into().unwrap()
    }

    /// Returns this clock as a store takes it.
    pub fn for_store(self: &Arc<Self>) -> store::StoreClock {
        let (clock, passed) = (Arc::clone(self), self.monotonic());
        store::StoreClock::new(move || clock.millis()).with_monotonic(move || passed())
    }

    /// Returns the time that has passed, whatever the clock shows.
    pub fn monotonic(self: &Arc<Self>) -> Arc<dyn Fn() -> Duration + Send + Sync> {
        let clock = Arc::clone(self);
        Arc::new(move || Duration::from_millis(clock.passed.load(Ordering::SeqCst).try_into().unwrap()))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis.load(Ordering::SeqCst))
    }
}

fn millis(duration: Duration) -> i64 {
    duration.as_millis().try_into().unwrap()
}
