//! The clock that a store is given.

use std::{fmt, sync::Arc};

/// Milliseconds since 1970, UTC.
pub type UnixMillis = u64;

/// Tells a store the time.
#[derive(Clone)]
pub struct StoreClock(Arc<dyn Fn() -> UnixMillis + Send + Sync>);

impl StoreClock {
    /// A clock that calls `now` each time.
    pub fn new(now: impl Fn() -> UnixMillis + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(crate) fn now_ms(&self) -> UnixMillis {
        // 285,000 years: Redis counts in floating point, which is exact up to here.
        (self.0)().min(1 << 53)
    }
}

impl fmt::Debug for StoreClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreClock")
    }
}
