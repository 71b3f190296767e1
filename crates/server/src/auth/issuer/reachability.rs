//! Tracks whether an account service answers, so that calls do not wait for one that does not.

use std::time::Duration;

use parking_lot::Mutex;
use types::Timestamp;

use crate::auth::metrics;

/// Time for which calls are decided without asking, until one of them asks again.
const PAUSE: Duration = Duration::from_secs(2);

/// Remembers whether the last question was answered.
pub(in crate::auth) struct Reachability {
    /// `None` while it answers.
    outage: Mutex<Option<Outage>>,
}

#[derive(Clone, Copy)]
struct Outage {
    since: Timestamp,
    /// Time of the last question without a response.
    tried: Timestamp,
    /// True if a question failed. Otherwise, one only takes long.
    is_silent: bool,
}

impl Default for Reachability {
    fn default() -> Self {
        metrics::describe();
        metrics::account_reachable(true);
        Self { outage: Mutex::default() }
    }
}

impl Reachability {
    /// Returns true if a call may ask and wait for the response: if the service answers, and otherwise one call per
    /// pause.
    pub(in crate::auth) fn may_ask(&self, now: Timestamp) -> bool {
        self.change(|outage| {
            let Some(outage) = outage else { return true };
            let is_over = outage.tried > now || now.since(outage.tried) >= PAUSE;
            if is_over {
                outage.tried = now;
            }
            is_over
        })
    }

    /// Returns the time since which it has not answered; zero if it answers.
    pub(in crate::auth) fn silent_for(&self, now: Timestamp) -> Duration {
        self.change(|outage| outage.map_or(Duration::ZERO, |outage| now.since(outage.since.min(now))))
    }

    /// Notes a response. Returns true if the last question had none.
    pub(super) fn answered(&self) -> bool {
        let was_silent = self.change(Option::take).is_some_and(|outage| outage.is_silent);
        if was_silent {
            metrics::account_reachable(true);
        }
        was_silent
    }

    /// Notes that a response takes so long that other calls should not wait for theirs.
    pub(in crate::auth) fn slow(&self, now: Timestamp) {
        self.change(|outage| Self::note(outage, now, false));
    }

    /// Notes that there was no response. Returns true if the last question had one.
    pub(super) fn silent(&self, now: Timestamp) -> bool {
        let was_silent = self.change(|outage| Self::note(outage, now, true));
        if !was_silent {
            metrics::account_reachable(false);
        }
        !was_silent
    }

    /// Returns true if it was silent before.
    fn note(outage: &mut Option<Outage>, now: Timestamp, is_silent: bool) -> bool {
        let before = outage.unwrap_or(Outage { since: now, tried: now, is_silent: false });
        *outage = Some(Outage { since: before.since.min(now), tried: now, is_silent: before.is_silent || is_silent });
        before.is_silent
    }

    fn change<T>(&self, change: impl FnOnce(&mut Option<Outage>) -> T) -> T {
        change(&mut self.outage.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_once_per_pause_while_there_is_no_answer() {
        let (reachability, start) = (Reachability::default(), Timestamp::from_millis(1_000_000));
        assert!(reachability.may_ask(start) && reachability.may_ask(start));
        assert!(reachability.silent(start) && !reachability.silent(start));
        assert!(!reachability.may_ask(start));
        let later = start.plus(PAUSE);
        assert!(reachability.may_ask(later) && !reachability.may_ask(later));
        assert!(reachability.may_ask(start), "the clock was set back");
        assert!(reachability.answered() && !reachability.answered());
        assert!(reachability.may_ask(start));
    }

    #[test]
    fn a_slow_response_pauses_questions_without_being_an_outage() {
        let (reachability, start) = (Reachability::default(), Timestamp::from_millis(1_000_000));
        reachability.slow(start);
        assert!(!reachability.may_ask(start) && !reachability.answered() && reachability.may_ask(start));
        reachability.slow(start);
        assert!(reachability.silent(start), "the question failed in the end");
    }

    #[test]
    fn an_outage_lasts_from_its_first_question_to_the_next_answer() {
        let (reachability, start) = (Reachability::default(), Timestamp::from_millis(1_000_000));
        let later = start.plus(PAUSE);
        reachability.slow(start);
        reachability.silent(later);
        assert_eq!(reachability.silent_for(later), PAUSE);
        assert_eq!(reachability.silent_for(Timestamp::from_millis(0)), Duration::ZERO, "the clock was set back");
        reachability.answered();
        assert_eq!(reachability.silent_for(later), Duration::ZERO);
    }
}
