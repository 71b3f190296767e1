//! Lets one network be tried at a time. Of the trials of a user, the newest ends those before, also one that waits.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use types::UserId;

/// Maximum time until a trial has ended that another one replaces.
const END_MAX: Duration = Duration::from_secs(5);

/// The one permit of all users.
pub(super) struct TrialPermits {
    semaphore: Arc<Semaphore>,
    /// The user who has the permit or had it last, with what ends the newest trial, whether it runs or waits.
    newest: Mutex<Option<(UserId, CancellationToken)>>,
}

/// The reason why there is no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unpermitted {
    /// Another user has it.
    OfOther,
    /// The user has asked for another one meanwhile.
    Replaced,
    /// The one before has not ended in time.
    NotEnded,
}

/// The permit to try a network, until it is dropped.
pub(super) struct TrialPermit {
    /// Cancelled when the user starts another trial.
    pub(super) replaced: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl TrialPermits {
    pub(super) fn new() -> Self {
        Self { semaphore: Arc::new(Semaphore::new(1)), newest: Mutex::default() }
    }

    /// Returns the permit, after ending a trial of the same user; none while another user has it.
    pub(super) async fn take(&self, user_id: &UserId) -> Result<TrialPermit, Unpermitted> {
        let replaced = CancellationToken::new();
        if let Some(permit) = self.take_free(user_id, &replaced)? {
            return Ok(TrialPermit { replaced, _permit: permit });
        }
        let permit = tokio::select! {
            biased;
            () = replaced.cancelled() => return Err(Unpermitted::Replaced),
            permit = timeout(END_MAX, self.semaphore.clone().acquire_owned()) => permit,
        };
        match permit {
            Ok(Ok(permit)) => Ok(TrialPermit { replaced, _permit: permit }),
            _ => Err(Unpermitted::NotEnded),
        }
    }

    /// Returns the permit if it is free; none if it is the user's own, whose trial is ended.
    fn take_free(
        &self,
        user_id: &UserId,
        replaced: &CancellationToken,
    ) -> Result<Option<OwnedSemaphorePermit>, Unpermitted> {
        let mut newest = self.newest.lock();
        let permit = self.semaphore.clone().try_acquire_owned().ok();
        if permit.is_none() {
            let own = newest.as_ref().filter(|(user, _)| user == user_id);
            let (_, before) = own.ok_or(Unpermitted::OfOther)?;
            before.cancel();
        }
        *newest = Some((user_id.clone(), replaced.clone()));
        Ok(permit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_user_replaces_the_own_trial_and_waits_for_that_of_another() {
        let [alice, bobby] = [1, 2].map(|byte| UserId::from_bytes([byte; 12]));
        let permits = TrialPermits::new();
        let first = permits.take(&alice).await.unwrap();
        assert_eq!(permits.take(&bobby).await.err(), Some(Unpermitted::OfOther));
        assert!(!first.replaced.is_cancelled());
        let ending = async {
            first.replaced.cancelled().await;
            drop(first);
        };
        let (second, ()) = tokio::join!(permits.take(&alice), ending);
        assert!(!second.as_ref().unwrap().replaced.is_cancelled());
        assert_eq!(permits.take(&bobby).await.err(), Some(Unpermitted::OfOther));
        drop(second);
        assert!(permits.take(&bobby).await.is_ok(), "a trial that has ended holds up nobody");
    }

    // Conformance: console: bridges, kept up to date, and trials of networks
    #[tokio::test]
    async fn the_newest_of_three_runs_also_while_the_second_waits() {
        let [alice, bobby] = [1, 2].map(|byte| UserId::from_bytes([byte; 12]));
        let permits = TrialPermits::new();
        let first = permits.take(&alice).await.unwrap();
        let (second, third, other, ()) = tokio::join!(biased; permits.take(&alice), permits.take(&alice), permits.take(&bobby), async {
            first.replaced.cancelled().await;
            drop(first);
        });
        assert_eq!((second.err(), other.err()), (Some(Unpermitted::Replaced), Some(Unpermitted::OfOther)));
        assert!(!third.unwrap().replaced.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_does_not_end_is_not_waited_for_for_ever() {
        let alice = UserId::from_bytes([1; 12]);
        let permits = TrialPermits::new();
        let _first = permits.take(&alice).await.unwrap();
        assert_eq!(permits.take(&alice).await.err(), Some(Unpermitted::NotEnded));
    }
}
