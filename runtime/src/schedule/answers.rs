//! Answers that wait a moment for others, so that whoever asked is woken once for many.
//!
//! Waking a thread costs the worker a few microseconds, as much as a small message itself. While more messages wait than
//! workers can run, an answer that comes a little later costs nobody anything.
//!
//! Nobody knows before what a message takes. One whose tenant used little until now and that loops holds up the answers
//! that wait, as it holds up the messages that wait: for one of its turns, and then its tenant counts as slow.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::contract::call::CallOutcome;

/// The most answers that wait.
const HELD_MAX: usize = 32;
/// How long the first of them waits, in time of the messages after it.
const AGE_MAX: Duration = Duration::from_micros(100);
/// None waits for a message of a tenant that lately used more fuel than this for one, which takes about as long.
const FUEL_MAX: u64 = 1_000_000;

/// Answers that wait.
#[derive(Default)]
pub(crate) struct Answers {
    held: Vec<(oneshot::Sender<CallOutcome>, CallOutcome)>,
    /// What the messages after the first of them took.
    age: Duration,
}

impl Answers {
    /// Keeps an answer.
    pub(crate) fn hold(&mut self, done: oneshot::Sender<CallOutcome>, report: CallOutcome) {
        if !self.held.is_empty() {
            self.age += report.elapsed;
        }
        self.held.push((done, report));
    }

    /// Sends them all, unless they may wait for one more message, whose tenant lately used the fuel `expected` for one;
    /// zero is unknown.
    pub(crate) fn make_way(&mut self, expected: u64) {
        let is_short = (1..=FUEL_MAX).contains(&expected);
        if !is_short || self.age >= AGE_MAX || self.held.len() >= HELD_MAX {
            self.send();
        }
    }

    /// Sends them all.
    pub(crate) fn send(&mut self) {
        for (done, report) in self.held.drain(..) {
            // The asker may have gone by now; then nobody misses the report.
            let _ = done.send(report);
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

    fn report(elapsed: Duration) -> CallOutcome {
        CallOutcome { elapsed, ..CallOutcome::of(Err(Failure::broken(Slot::Decoder, "for the test"))) }
    }

    /// How many of `count` answers that took so long have arrived when the next message may use the fuel `expected`.
    fn arrived(count: usize, elapsed: Duration, expected: u64) -> usize {
        let mut answers = Answers::default();
        let mut receivers = Vec::new();
        for _ in 0..count {
            let (done, receiver) = oneshot::channel();
            answers.hold(done, report(elapsed));
            receivers.push(receiver);
        }
        answers.make_way(expected);
        receivers.iter_mut().filter_map(|receiver| receiver.try_recv().ok()).count()
    }

    #[test]
    fn answers_wait_for_others_but_not_for_long() {
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
    fn before_a_rest_all_are_sent() {
        let mut answers = Answers::default();
        let (done, mut receiver) = oneshot::channel();
        answers.hold(done, report(Duration::ZERO));
        answers.send();
        assert!(receiver.try_recv().is_ok());
    }
}
