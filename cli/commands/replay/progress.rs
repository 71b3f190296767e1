//! The progress of a replay, on a terminal.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use replay::Report;
use types::{Clock, Timestamp};

/// Minimum interval between two updates.
const INTERVAL: Duration = Duration::from_millis(500);

/// A line on standard error that is written again and again.
pub(super) struct Progress {
    started: Timestamp,
    shown: Option<Timestamp>,
    is_terminal: bool,
}

impl Progress {
    pub(super) fn new(started: Timestamp) -> Self {
        Self { started, shown: None, is_terminal: io::stderr().is_terminal() }
    }

    /// Shows the number of uplinks that have run, at most once per interval.
    pub(super) fn show(&mut self, report: &Report, clock: &dyn Clock) {
        if !self.is_terminal {
            return;
        }
        let now = clock.now();
        if now.since(self.shown.unwrap_or(self.started)) < INTERVAL {
            return;
        }
        self.shown = Some(now);
        let counts = &report.counts;
        let rate = counts.uplinks as f64 / now.since(self.started).as_secs_f64();
        let (equal, failing) = (counts.equal, counts.newly_failing);
        let line = format!("{} uplinks, {rate:.0}/s: {equal} equal, {failing} newly failing", counts.uplinks);
        // Nobody needs it so much that the replay should end.
        _ = write!(io::stderr(), "\r{line}\x1b[K").and_then(|()| io::stderr().flush());
    }

    /// Removes the line.
    pub(super) fn clear(&self) {
        if self.shown.is_some() {
            _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
