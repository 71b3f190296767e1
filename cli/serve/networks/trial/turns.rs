//! Lets one network be tried at a time. Who tries another one ends the own trial before.

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
    /// The user who had the last turn, with what ends it.
    last: Mutex<Option<(UserId, CancellationToken)>>,
}

/// A turn; it ends when this is dropped.
pub(super) struct Turn {
    /// Cancelled when the user takes another turn.
    pub(super) replaced: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), last: Mutex::default() }
    }

    /// Returns a turn, after that of the same user; none while another user has it.
    pub(super) async fn take(&self, user_id: &UserId) -> Option<Turn> {
        let turn = self.turn.clone();
        let permit = match self.replace(user_id) {
            true => timeout(END_MAX, turn.acquire_owned()).await.ok()?.ok()?,
            false => turn.try_acquire_owned().ok()?,
        };
        let replaced = CancellationToken::new();
        *self.last() = Some((user_id.clone(), replaced.clone()));
        Some(Turn { replaced, _permit: permit })
    }

    /// Ends the turn of a user; false if the last was not theirs.
    fn replace(&self, user_id: &UserId) -> bool {
        let last = self.last();
        let own = last.as_ref().filter(|(last, _)| last == user_id);
        own.inspect(|(_, replaced)| replaced.cancel()).is_some()
    }

    fn last(&self) -> MutexGuard<'_, Option<(UserId, CancellationToken)>> {
        // A panic elsewhere leaves it usable.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
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
        assert!(turns.take(&bobby).await.is_none());
        assert!(!first.replaced.is_cancelled());
        let ending = async {
            first.replaced.cancelled().await;
            drop(first);
        };
        let (second, ()) = tokio::join!(turns.take(&alice), ending);
        assert!(!second.as_ref().unwrap().replaced.is_cancelled());
        assert!(turns.take(&bobby).await.is_none());
        drop(second);
        assert!(turns.take(&bobby).await.is_some(), "a trial that has ended holds up nobody");
    }
}
