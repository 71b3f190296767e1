//! The progress of a worker while it has messages for its destination: how often those at the front were sent, and since
//! when nothing gets through. It is in memory, and ends with the worker.

use std::collections::HashMap;

use parking_lot::Mutex;
use store::Key;
use types::Timestamp;

/// Maximum number of characters of a reason.
const REASON_CHARS_MAX: usize = 300;

/// Attempts of a worker, as far as it remembers them.
#[derive(Default)]
pub(crate) struct Progress(Mutex<RetryState>);

/// Attempts to deliver of which none got through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// When the first of them failed.
    pub since: Timestamp,
    /// When the last of them failed.
    pub last: Timestamp,
    /// The answer to the last one, or the error.
    pub reason: String,
}

#[derive(Default)]
struct RetryState {
    failing: Option<Failing>,
    /// The end of the pause after failures, while there is one.
    next: Option<Timestamp>,
    /// Those of the messages that are sent together, at most.
    attempts: HashMap<Key, u32>,
}

impl Progress {
    /// Notes that nothing gets through.
    pub(super) fn failed(&self, now: Timestamp, reason: &str) {
        let reason = reason.chars().take(REASON_CHARS_MAX).collect();
        let mut state = self.0.lock();
        let since = state.failing.as_ref().map_or(now, |failing| failing.since);
        state.failing = Some(Failing { since, last: now, reason });
    }

    /// Notes that messages get through.
    pub(super) fn succeeded(&self) {
        self.0.lock().failing = None;
    }

    /// Notes how often the messages at the front were sent.
    pub(super) fn note_attempts(&self, attempts: &HashMap<Key, u32>) {
        self.0.lock().attempts.clone_from(attempts);
    }

    /// Notes when the next attempts begin, or that they have begun.
    pub(super) fn pauses_until(&self, next: Option<Timestamp>) {
        self.0.lock().next = next;
    }

    /// Forgets everything, because another process delivers.
    pub(super) fn forget(&self) {
        *self.0.lock() = RetryState::default();
    }

    /// None while messages get through, or none was sent yet.
    pub(crate) fn failing(&self) -> Option<Failing> {
        self.0.lock().failing.clone()
    }

    /// When the next attempts begin; none while there is no pause after failures.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.0.lock().next
    }

    /// Number of times that a message was sent, as far as that is known.
    pub(crate) fn attempts(&self, message: &Key) -> u32 {
        self.0.lock().attempts.get(message).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_begin_with_the_first_and_end_with_a_success() {
        let (progress, at) = (Progress::default(), Timestamp::from_millis);
        assert_eq!(progress.failing(), None);
        progress.failed(at(1000), "500");
        progress.failed(at(2000), &"x".repeat(1000));
        let failing = progress.failing().unwrap();
        assert_eq!((failing.since, failing.last, failing.reason.len()), (at(1000), at(2000), REASON_CHARS_MAX));
        progress.pauses_until(Some(at(2500)));
        assert_eq!(progress.next(), Some(at(2500)));
        progress.succeeded();
        progress.failed(at(3000), "500");
        assert_eq!(progress.failing().map(|failing| failing.since), Some(at(3000)));
        progress.forget();
        assert_eq!((progress.failing(), progress.next()), (None, None));
    }
}
