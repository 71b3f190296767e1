//! Deletes the messages of deleted destinations, and those that are too old.

use store::{Batch, Key};
use types::{AppId, Timestamp};

use super::{Queues, ids, stored::Queued};
use crate::{
    Error,
    destination::{Destination, Part},
};

/// Number of records deleted at once.
const DELETE_MAX: usize = 128;

impl Queues {
    /// Deletes everything about a destination.
    pub(crate) async fn delete(&self, destination: &Destination) -> Result<(), Error> {
        for part in Part::ALL {
            self.delete_part(destination, part).await?;
        }
        // These expect nothing, so they cannot conflict.
        let records = [destination.dropped()?, destination.lease()?, destination.delivered()?];
        _ = self.store.commit(records.into_iter().fold(Batch::new(), Batch::delete)).await?;
        Ok(())
    }

    /// Deletes all messages in a part of a destination.
    pub(crate) async fn delete_part(&self, destination: &Destination, part: Part) -> Result<(), Error> {
        loop {
            let entries = self.store.list(&destination.prefix(part)?, None, DELETE_MAX).await?;
            if entries.is_empty() {
                self.room.sizes.forget(destination, part);
                return Ok(());
            }
            let all: Vec<_> = entries.iter().map(|entry| Queued::look_at(part, entry)).collect();
            self.delete_these(destination, &all).await?;
        }
    }

    /// Deletes the dead letters of a destination that were given up before a time.
    pub(crate) async fn delete_dead_letters_before(
        &self,
        destination: &Destination,
        before: Timestamp,
    ) -> Result<(), Error> {
        let (prefix, mut after) = (destination.prefix(Part::DeadLetters)?, None);
        loop {
            let entries = self.store.list(&prefix, after.as_ref(), DELETE_MAX).await?;
            let Some(last) = entries.last() else { return Ok(()) };
            after = Some(last.key.clone());
            let letters = entries.iter().filter_map(|entry| Queued::letter(entry).ok());
            let old: Vec<_> = letters.filter(|(_, letter)| letter.failed_at < before).map(|(old, _)| old).collect();
            self.delete_these(destination, &old).await?;
            self.room.sizes.removed(destination, Part::DeadLetters);
        }
    }

    /// Deletes these messages, unless some of them were removed meanwhile.
    async fn delete_these(&self, destination: &Destination, deleted: &[Queued]) -> Result<(), Error> {
        let batch = self.bodies.remove(Batch::new(), &destination.app_id, &Vec::from_iter(deleted)).await?;
        if !batch.is_empty() {
            _ = self.store.commit(batch).await?;
        }
        Ok(())
    }

    /// The oldest messages of a queue that were queued before a time.
    pub(crate) async fn oldest_before(
        &self,
        destination: &Destination,
        before: Timestamp,
    ) -> Result<Vec<Queued>, Error> {
        let entries = self.store.list(&destination.prefix(Part::Queue)?, None, DELETE_MAX).await?;
        let queued = entries.iter().map(|entry| Queued::look_at(Part::Queue, entry));
        Ok(queued.take_while(|queued| ids::time(queued.id()) < before).collect())
    }

    /// The destinations of an application that have messages in a part.
    pub(crate) async fn destinations_with(&self, app_id: &AppId, part: Part) -> Result<Vec<Destination>, Error> {
        let (prefix, mut after) = (part.of_application(app_id)?, None::<Key>);
        let mut found = Vec::new();
        loop {
            let entries = self.store.list(&prefix, after.as_ref(), 1).await?;
            let Some(entry) = entries.first() else { return Ok(found) };
            let Some(destination) = Destination::of_key(app_id, part, &entry.key) else { return Ok(found) };
            after = Some(destination.after(part)?);
            found.push(destination);
        }
    }
}
