//! The time after which a codec has the report that there is by then.

use std::time::{Duration, Instant};

/// None where nothing depends on time.
#[derive(Clone, Copy)]
pub(super) struct Deadline(Option<Instant>);

impl Deadline {
    /// The end of some time from now.
    pub(super) fn after(time: Option<Duration>) -> Self {
        Self(time.and_then(|time| Instant::now().checked_add(time)))
    }

    pub(super) fn is_past(self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }
}
