//! The pauses between attempts to connect.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::{Sleep, sleep};

/// The shortest and longest pauses before jitter, which adds up to as much again.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// Pauses that double with each failure in a row.
pub struct Backoff {
    builder: ExponentialBuilder,
    pauses: ExponentialBackoff,
}

impl Default for Backoff {
    /// Begins with the shortest pause.
    fn default() -> Self {
        let builder = ExponentialBuilder::new()
            .with_min_delay(PAUSE_MIN)
            .with_max_delay(PAUSE_MAX)
            .without_max_times()
            .with_jitter();
        Self { builder, pauses: builder.build() }
    }
}

impl Backoff {
    /// Starts again with the shortest pause.
    pub fn reset(&mut self) {
        self.pauses = self.builder.build();
    }

    /// A pause. The next one is twice as long.
    pub fn pause(&mut self) -> Sleep {
        self.pause_at_most(Duration::MAX)
    }

    /// Like [`Self::pause`], for no longer than this.
    pub fn pause_at_most(&mut self, pause_max: Duration) -> Sleep {
        sleep(self.pauses.next().unwrap_or(PAUSE_MAX).min(pause_max))
    }
}
