//! The time, which is given to the store and never taken.

use std::{fmt, sync::Arc};

/// A point in time: milliseconds since 1970, UTC.
pub type UnixMillis = u64;

/// Says what time it is.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> UnixMillis + Send + Sync>);

impl Clock {
    /// A clock that asks `now` each time.
    pub fn new(now: impl Fn() -> UnixMillis + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> UnixMillis {
        // Some 285,000 years: both back ends count time in numbers that are exact up to here.
        (self.0)().min(1 << 53)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
