//! The clock that a store is given.

pub(crate) mod steadiness;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

/// Milliseconds since 1970, UTC.
pub type UnixMillis = u64;

/// Tells a store the time.
#[derive(Clone)]
pub struct StoreClock {
    now: Arc<dyn Fn() -> UnixMillis + Send + Sync>,
    monotonic: Arc<dyn Fn() -> Duration + Send + Sync>,
}

impl StoreClock {
    /// A clock that calls `now` each time. The monotonic clock of this machine tells when it jumps.
    pub fn new(now: impl Fn() -> UnixMillis + Send + Sync + 'static) -> Self {
        let start = Instant::now();
        Self { now: Arc::new(now), monotonic: Arc::new(move || start.elapsed()) }
    }

    /// Asks `monotonic` for the time that has passed since any moment, instead of this machine.
    pub fn with_monotonic(self, monotonic: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { monotonic: Arc::new(monotonic), ..self }
    }

    pub(crate) fn now_ms(&self) -> UnixMillis {
        // 285,000 years: Redis counts in floating point, which is exact up to here.
        (self.now)().min(1 << 53)
    }

    pub(crate) fn monotonic_ms(&self) -> u64 {
        u64::try_from((self.monotonic)().as_millis()).unwrap_or(u64::MAX)
    }
}

impl fmt::Debug for StoreClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreClock")
    }
}
