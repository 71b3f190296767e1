//! Tracks whether an account service responds, so that not every call waits for one that is down.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use types::Timestamp;

use super::metrics;

/// How long calls that can go on without a response do so, until one of them asks again.
const PAUSE: Duration = Duration::from_secs(2);

/// Remembers whether the last question was answered.
pub(super) struct Reachability {
    /// Since when not, or when that was last tried; none while it answers.
    silent: Mutex<Option<Timestamp>>,
}

impl Default for Reachability {
    fn default() -> Self {
        metrics::describe();
        metrics::account_reachable(true);
        Self { silent: Mutex::default() }
    }
}

impl Reachability {
    /// Whether to ask for a call that can go on without a response: if the service answers, or one call per pause.
    pub(super) fn may_ask(&self, now: Timestamp) -> bool {
        self.change(|silent| {
            let is_paused = silent.is_some_and(|tried| tried <= now && now.since(tried) < PAUSE);
            if silent.is_some() && !is_paused {
                *silent = Some(now);
            }
            !is_paused
        })
    }

    /// Notes a response. Returns true if the last question had none.
    pub(super) fn answered(&self) -> bool {
        let was_silent = self.change(|silent| silent.take().is_some());
        if was_silent {
            metrics::account_reachable(true);
        }
        was_silent
    }

    /// Notes that there was no response. Returns true if the last question had one.
    pub(super) fn silent(&self, now: Timestamp) -> bool {
        let was_silent = self.change(|silent| silent.replace(now).is_some());
        if !was_silent {
            metrics::account_reachable(false);
        }
        !was_silent
    }

    fn change<T>(&self, change: impl FnOnce(&mut Option<Timestamp>) -> T) -> T {
        change(&mut self.silent.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_once_per_pause_while_there_is_no_response() {
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
}
