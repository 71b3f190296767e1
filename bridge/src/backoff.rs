//! The pauses between attempts to connect.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::sleep;

/// The shortest and longest pauses before jitter, which adds up to as much again.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// Pauses that double with each failure in a row.
pub(crate) struct Backoff {
    builder: ExponentialBuilder,
    pauses: ExponentialBackoff,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        let builder = ExponentialBuilder::new()
            .with_min_delay(PAUSE_MIN)
            .with_max_delay(PAUSE_MAX)
            .without_max_times()
            .with_jitter();
        Self { builder, pauses: builder.build() }
    }

    /// Starts again with the shortest pause.
    pub(crate) fn reset(&mut self) {
        self.pauses = self.builder.build();
    }

    pub(crate) async fn pause(&mut self) {
        self.pause_at_most(Duration::MAX).await;
    }

    pub(crate) async fn pause_at_most(&mut self, pause_max: Duration) {
        sleep(self.pauses.next().unwrap_or(PAUSE_MAX).min(pause_max)).await;
    }
}
