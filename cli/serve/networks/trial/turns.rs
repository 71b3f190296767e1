//! Lets one network be tried at a time. Of the trials of a user, the newest ends those before, also one that waits.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use types::UserId;

/// Maximum time until a trial has ended that another one replaces.
const END_MAX: Duration = Duration::from_secs(5);

/// One turn for all users.
pub(super) struct Turns {
    turn: Arc<Semaphore>,
    /// The user who has the turn or had the last one, with what ends the newest trial, whether it runs or waits.
    newest: Mutex<Option<(UserId, CancellationToken)>>,
}

/// The reason why there is no turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoTurn {
    /// Another user has it.
    OfOther,
    /// The user has asked for another one meanwhile.
    Replaced,
    /// The one before has not ended in time.
    NotEnded,
}

/// A turn; it ends when this is dropped.
pub(super) struct Turn {
    /// Cancelled when the user takes another turn.
    pub(super) replaced: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), newest: Mutex::default() }
    }

    /// Returns a turn, after those of the same user, which it ends; none while another user has it.
    pub(super) async fn take(&self, user_id: &UserId) -> Result<Turn, NoTurn> {
        let replaced = CancellationToken::new();
        if let Some(permit) = self.take_free(user_id, &replaced)? {
            return Ok(Turn { replaced, _permit: permit });
        }
        let permit = tokio::select! {
            biased;
            () = replaced.cancelled() => return Err(NoTurn::Replaced),
            permit = timeout(END_MAX, self.turn.clone().acquire_owned()) => permit,
        };
        match permit {
            Ok(Ok(permit)) => Ok(Turn { replaced, _permit: permit }),
            _ => Err(NoTurn::NotEnded),
        }
    }

    /// Returns the turn if it is free; none if it is the user's own, which is ended.
    fn take_free(
        &self,
        user_id: &UserId,
        replaced: &CancellationToken,
    ) -> Result<Option<OwnedSemaphorePermit>, NoTurn> {
        let mut newest = self.newest();
        let permit = self.turn.clone().try_acquire_owned().ok();
        if permit.is_none() {
            let own = newest.as_ref().filter(|(user, _)| user == user_id);
            let (_, before) = own.ok_or(NoTurn::OfOther)?;
            before.cancel();
        }
        *newest = Some((user_id.clone(), replaced.clone()));
        Ok(permit)
    }

    fn newest(&self) -> MutexGuard<'_, Option<(UserId, CancellationToken)>> {
        // A panic elsewhere leaves it usable.
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_user_replaces_the_own_trial_and_waits_for_that_of_another() {
        let [alice, bobby] = [1, 2].map(|byte| UserId::from_bytes([byte; 12]));
        let turns = Turns::new();
        let first = turns.take(&alice).await.unwrap();
        assert_eq!(turns.take(&bobby).await.err(), Some(NoTurn::OfOther));
        assert!(!first.replaced.is_cancelled());
        let ending = async {
            first.replaced.cancelled().await;
            drop(first);
        };
        let (second, ()) = tokio::join!(turns.take(&alice), ending);
        assert!(!second.as_ref().unwrap().replaced.is_cancelled());
        assert_eq!(turns.take(&bobby).await.err(), Some(NoTurn::OfOther));
        drop(second);
        assert!(turns.take(&bobby).await.is_ok(), "a trial that has ended holds up nobody");
    }

    // Conformance: console: bridges, kept up to date, and trials of networks
    #[tokio::test]
    async fn the_newest_of_three_runs_also_while_the_second_waits() {
        let [alice, bobby] = [1, 2].map(|byte| UserId::from_bytes([byte; 12]));
        let turns = Turns::new();
        let first = turns.take(&alice).await.unwrap();
        let (second, third, other, ()) = tokio::join!(biased; turns.take(&alice), turns.take(&alice), turns.take(&bobby), async {
            first.replaced.cancelled().await;
            drop(first);
        });
        assert_eq!((second.err(), other.err()), (Some(NoTurn::Replaced), Some(NoTurn::OfOther)));
        assert!(!third.unwrap().replaced.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_does_not_end_is_not_waited_for_for_ever() {
        let alice = UserId::from_bytes([1; 12]);
        let turns = Turns::new();
        let _first = turns.take(&alice).await.unwrap();
        assert_eq!(turns.take(&alice).await.err(), Some(NoTurn::NotEnded));
    }
}
