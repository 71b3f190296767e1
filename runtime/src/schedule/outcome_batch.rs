//! Delays outcomes for a moment, so that callers are woken for several at once.
//!
//! Waking a thread costs the worker a few microseconds, as much as a small message. While messages are queued, a
//! slightly later outcome costs nobody anything.
//!
//! The duration of the next message is only a prediction. If a tenant was fast until now and suddenly loops, the
//! delayed outcomes wait for that one message; after that its tenant counts as slow.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::contract::call::CallOutcome;

const OUTCOMES_MAX: usize = 32;
/// Maximum time for which the first outcome waits, measured by the messages after it.
const AGE_MAX: Duration = Duration::from_micros(100);
/// Outcomes do not wait for a message that is expected to use more fuel than this, which takes about as long.
const FUEL_MAX: u64 = 1_000_000;

#[derive(Default)]
pub(crate) struct OutcomeBatch {
    outcomes: Vec<(oneshot::Sender<CallOutcome>, CallOutcome)>,
    /// The time that the messages after the first outcome took.
    age: Duration,
}

impl OutcomeBatch {
    pub(crate) fn push(&mut self, done: oneshot::Sender<CallOutcome>, outcome: CallOutcome) {
        if !self.outcomes.is_empty() {
            self.age += outcome.elapsed;
        }
        self.outcomes.push((done, outcome));
    }

    /// Sends all outcomes, unless they may wait for the next message, which is expected to use `expected_fuel`; zero is
    /// unknown.
    pub(crate) fn before_message(&mut self, expected_fuel: u64) {
        let is_short = (1..=FUEL_MAX).contains(&expected_fuel);
        if !is_short || self.age >= AGE_MAX || self.outcomes.len() >= OUTCOMES_MAX {
            self.flush();
        }
    }

    pub(crate) fn flush(&mut self) {
        for (done, outcome) in self.outcomes.drain(..) {
            // The caller may have given up meanwhile.
            let _ = done.send(outcome);
        }
        self.age = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::failure::Failure;
    use crate::contract::wire::Slot;

    const SHORT: u64 = 50_000;

    fn outcome(elapsed: Duration) -> CallOutcome {
        CallOutcome { elapsed, ..CallOutcome::new(Err(Failure::broken(Slot::Decoder, "for the test"))) }
    }

    /// Returns the number of outcomes, of `count` that took `elapsed` each, that are sent before a message with this
    /// expected fuel.
    fn arrived(count: usize, elapsed: Duration, expected: u64) -> usize {
        let mut outcomes = OutcomeBatch::default();
        let mut receivers = Vec::new();
        for _ in 0..count {
            let (done, receiver) = oneshot::channel();
            outcomes.push(done, outcome(elapsed));
            receivers.push(receiver);
        }
        outcomes.before_message(expected);
        receivers.iter_mut().filter_map(|receiver| receiver.try_recv().ok()).count()
    }

    #[test]
    fn outcomes_wait_for_others_but_not_for_long() {
        let (quick, slow) = (Duration::from_micros(1), Duration::from_micros(60));
        for (count, elapsed, expected, sent, why) in [
            (1, slow, SHORT, 0, "one waits for a short message"),
            (2, slow, SHORT, 0, "the first has waited for 60 µs"),
            (3, slow, SHORT, 3, "the first has waited for 120 µs"),
            (31, quick, SHORT, 0, "many quick ones wait"),
            (32, quick, SHORT, 32, "there are enough"),
            (1, quick, 100_000_000, 1, "the next one may take long"),
            (1, quick, 0, 1, "nobody knows how long the next one takes"),
        ] {
            assert_eq!(arrived(count, elapsed, expected), sent, "{why}");
        }
    }

    #[test]
    fn flushing_sends_all_outcomes() {
        let mut outcomes = OutcomeBatch::default();
        let (done, mut receiver) = oneshot::channel();
        outcomes.push(done, outcome(Duration::ZERO));
        outcomes.flush();
        assert!(receiver.try_recv().is_ok());
    }
}
