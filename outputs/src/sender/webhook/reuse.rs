//! Receivers that keep idle connections: a few of each owner, and a bounded number of all.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use server::ledger::Owner;
use tokio::time::Instant;

/// Maximum number of idle connections to a receiver, and how long they are reusable.
pub(super) const CONNECTIONS_MAX: usize = 4;
pub(super) const IDLE_TIME: Duration = Duration::from_secs(30);
/// Maximum numbers of receivers with idle connections, of one owner and of all: at most 1,024 connections.
const OWNER_RECEIVERS_MAX: usize = 32;
const RECEIVERS_MAX: usize = 256;
/// Time that a receiver counts after its last request: idle connections are looked through once in their time.
const COUNT_TIME: Duration = Duration::from_secs(2 * IDLE_TIME.as_secs());

/// The receivers whose connections are reusable. The others get a connection for each request.
#[derive(Default)]
pub(super) struct Reuse {
    receivers: Mutex<HashMap<String, Reusable>>,
}

struct Reusable {
    owner: Owner,
    until: Instant,
}

impl Reuse {
    /// Returns true if the connection of a request may be reusable. It counts for the owner whose request came first.
    pub(super) fn may_keep(&self, owner: &Owner, receiver: &str) -> bool {
        let now = Instant::now();
        let until = now + COUNT_TIME;
        let mut receivers = self.receivers.lock();
        if let Some(reusable) = receivers.get_mut(receiver) {
            reusable.until = until;
            return true;
        }
        let is_full = |receivers: &HashMap<String, Reusable>| {
            receivers.len() >= RECEIVERS_MAX
                || receivers.values().filter(|reusable| reusable.owner == *owner).count() >= OWNER_RECEIVERS_MAX
        };
        if is_full(&receivers) {
            receivers.retain(|_, reusable| now < reusable.until);
            if is_full(&receivers) {
                return false;
            }
        }
        receivers.insert(receiver.to_owned(), Reusable { owner: owner.clone(), until });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn idle_connections_are_bounded_by_owner_and_in_all() {
        let reuse = Reuse::default();
        let owner = |number: usize| Owner::User(number.to_string().into());
        let kept = |number: usize| {
            let receivers = (0..100).map(|receiver| format!("{number}-{receiver}"));
            receivers.filter(|receiver| reuse.may_keep(&owner(number), receiver)).count()
        };
        assert_eq!(kept(0), OWNER_RECEIVERS_MAX);
        assert_eq!((1..100).map(kept).sum::<usize>(), RECEIVERS_MAX - OWNER_RECEIVERS_MAX);
        tokio::time::advance(COUNT_TIME).await;
        assert_eq!(kept(100), OWNER_RECEIVERS_MAX, "in the place of those that have no connections any more");
    }
}
