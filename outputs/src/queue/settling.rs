//! Reads messages from the queue of a destination for its worker, and settles them.

use std::collections::HashSet;

use store::{Batch, Commit, Key, Version};
use types::Timestamp;

use super::{
    Queues, Settled, Size, ids,
    stored::{Queued, StoredLetter},
};
use crate::{
    Error,
    destination::{Destination, Part, WEBHOOK},
    message::OutputMessage,
};

/// Maximum number of attempts of a commit while others drop messages that it settles, or settle others with the same
/// bodies.
const ATTEMPTS_MAX: usize = 16;
/// Maximum number of dead letters that one commit drops.
const DROP_MAX: usize = 128;

impl Queues {
    /// The oldest messages of a queue. Those of several processes are in the order in which they were stored.
    pub(crate) async fn first(&self, destination: &Destination, limit: usize) -> Result<Vec<Queued>, Error> {
        let mut entries = self.store.list(&destination.prefix(Part::Queue)?, None, limit).await?;
        entries.sort_by_key(|entry| entry.version);
        entries.iter().map(|entry| Queued::read(Part::Queue, entry)).collect()
    }

    /// A message with its body; none if its body is missing, because the message was dropped.
    pub(crate) async fn message(
        &self,
        destination: &Destination,
        queued: &Queued,
    ) -> Result<Option<OutputMessage>, Error> {
        self.bodies.message(destination, queued).await
    }

    /// Those of some messages that were queued before a time.
    pub(crate) fn queued_before(queued: &[Queued], before: Timestamp) -> Vec<Queued> {
        queued.iter().filter(|queued| ids::time(queued.id()) < before).cloned().collect()
    }

    /// Returns the number of dropped messages that the destination has not been told about, and the version to expect
    /// when it has.
    pub(crate) async fn dropped(&self, destination: &Destination) -> Result<Option<(usize, Version)>, Error> {
        self.dropped.unreported(destination).await
    }

    /// Forgets what was reported to the destination. What was dropped since is reported next time.
    pub(crate) async fn mark_reported(&self, destination: &Destination, version: Version) -> Result<(), Error> {
        self.dropped.mark_reported(destination, version).await
    }

    pub(crate) async fn len(&self, destination: &Destination) -> Result<usize, Error> {
        Ok(self.store.page(&destination.prefix(Part::Queue)?, 0, 1).await?.total)
    }

    pub(crate) async fn is_empty(&self, destination: &Destination) -> Result<bool, Error> {
        Ok(self.store.list(&destination.prefix(Part::Queue)?, None, 1).await?.is_empty())
    }

    /// Removes what was delivered, and puts what was given up among the dead letters, for which there is so much room.
    /// Returns false if another process has the lease by now.
    pub(crate) async fn settle(
        &self,
        destination: &Destination,
        settled: &Settled,
        lease: Option<Version>,
        dead_letters: Size,
    ) -> Result<bool, Error> {
        let mut gone = HashSet::new();
        for _ in 0..ATTEMPTS_MAX {
            let batch = self.settling(destination, settled, lease, &gone).await?;
            if self.store.commit(batch).await? == Commit::Done {
                self.room.sizes.removed(destination, Part::Queue);
                if !settled.dead.is_empty() {
                    self.room.sizes.forget(destination, Part::DeadLetters);
                    self.trim(destination, Part::DeadLetters, dead_letters).await?;
                }
                return Ok(true);
            }
            if !self.has_lease(destination, lease).await? {
                return Ok(false);
            }
            gone = self.gone(settled).await?;
        }
        Err(Error::Conflict)
    }

    /// Settles all messages but those that are gone.
    async fn settling(
        &self,
        destination: &Destination,
        settled: &Settled,
        lease: Option<Version>,
        gone: &HashSet<Key>,
    ) -> Result<Batch, Error> {
        let mut batch = Batch::new();
        if let Some(version) = lease {
            batch = batch.expect(destination.lease()?, version);
        }
        for (queued, failure) in settled.dead.iter().filter(|(queued, _)| !gone.contains(&queued.key)) {
            let (message, failed_at) = (queued.message.clone(), self.clock.now());
            let (attempts, reason) = (failure.attempts, failure.reason.clone());
            let letter = serde_json::to_vec(&StoredLetter { message, failed_at, attempts, reason })?;
            batch = batch.expect(queued.key.clone(), queued.version).delete(queued.key.clone());
            batch = batch.put(destination.message(Part::DeadLetters, queued.id())?, letter);
        }
        // Owners of webhooks are told whether anything arrived.
        if destination.kind == WEBHOOK && !settled.delivered.is_empty() && !self.has_delivered(destination).await? {
            batch = batch.put(destination.delivered()?, b"{}".to_vec());
        }
        let leaving: Vec<&Queued> = settled.leaving().filter(|queued| !gone.contains(&queued.key)).collect();
        self.bodies.remove(batch, &destination.app_id, &leaving).await
    }

    /// Returns true if any message was ever delivered to a webhook.
    pub(crate) async fn has_delivered(&self, destination: &Destination) -> Result<bool, Error> {
        let record = self.store.get_one(&destination.delivered()?).await?;
        Ok(record.is_some())
    }

    async fn has_lease(&self, destination: &Destination, lease: Option<Version>) -> Result<bool, Error> {
        let Some(version) = lease else { return Ok(true) };
        let current = self.store.get_one(&destination.lease()?).await?;
        Ok(current.is_some_and(|current| current.version == version))
    }

    /// Those that somebody else has removed.
    async fn gone(&self, settled: &Settled) -> Result<HashSet<Key>, Error> {
        let keys: Vec<Key> = settled.keys().cloned().collect();
        let found = self.store.get(&keys).await?;
        Ok(keys.into_iter().zip(found).filter(|(_, found)| found.is_none()).map(|(key, _)| key).collect())
    }

    /// Removes the oldest of what exceeds a limit.
    async fn trim(&self, destination: &Destination, part: Part, limit: Size) -> Result<(), Error> {
        loop {
            let excess = self.room.excess((destination, part), Size::default(), limit, DROP_MAX).await?;
            if excess.messages.is_empty() {
                return Ok(());
            }
            let removed: Vec<&Queued> = excess.messages.iter().collect();
            let batch = self.bodies.remove(Batch::new(), &destination.app_id, &removed).await?;
            self.room.sizes.forget(destination, part);
            // After a conflict, there is less to remove.
            _ = self.store.commit(batch).await?;
        }
    }
}
