//! Counts of dropped messages that their destinations have not been told about.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use store::{Batch, Entry, Store, Version};

use crate::{Error, destination::Destination};

/// Counts dropped messages.
pub(super) struct DroppedCounts {
    pub(super) store: Arc<dyn Store>,
}

/// Stored count of dropped messages.
#[derive(Default, Serialize, Deserialize)]
struct StoredCount {
    messages: usize,
}

impl DroppedCounts {
    /// Counts messages that a batch drops. It fails if others count at the same time.
    pub(super) async fn add(&self, batch: Batch, destination: &Destination, dropped: usize) -> Result<Batch, Error> {
        let key = destination.dropped()?;
        let entry = self.store.get_one(&key).await?;
        let StoredCount { messages } = record(entry.as_ref());
        let counted = serde_json::to_vec(&StoredCount { messages: messages.saturating_add(dropped) })?;
        Ok(batch.expect_entry(&key, entry.as_ref()).put(key, counted))
    }

    /// Returns the number of dropped messages that the destination has not been told about, and the version to expect
    /// when it has.
    pub(super) async fn unreported(&self, destination: &Destination) -> Result<Option<(usize, Version)>, Error> {
        let entry = self.store.get_one(&destination.dropped()?).await?;
        let messages = record(entry.as_ref()).messages;
        Ok(entry.filter(|_| messages > 0).map(|entry| (messages, entry.version)))
    }

    /// Forgets what was reported to the destination. What was dropped since is reported next time.
    pub(super) async fn mark_reported(&self, destination: &Destination, version: Version) -> Result<(), Error> {
        let key = destination.dropped()?;
        // After a conflict, the destination is told again.
        _ = self.store.commit(Batch::new().expect(key.clone(), version).delete(key)).await?;
        Ok(())
    }
}

/// A damaged record counts as none: then it is not told how many there were.
fn record(entry: Option<&Entry>) -> StoredCount {
    entry.and_then(|entry| serde_json::from_slice(&entry.value).ok()).unwrap_or_default()
}
