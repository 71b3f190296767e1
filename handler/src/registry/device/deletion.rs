//! Deleted devices, until history has deleted their records too.
//!
//! A deletion is announced under the tag of the service, where it is found after a kill, and then stored with the
//! deletion of the device itself, which has the tag of its application.

use std::time::Duration;

use store::{Batch, Entry};
use types::{AppId, DevId, DevicePath, Timestamp};

use super::devices::{Deletion, Devices};
use crate::{Error, registry::application::store_keys};

/// Maximum number of deletions read at once.
const READ_MAX: usize = 256;
/// Age at which an announced deletion that has not deleted its device never will.
const ABANDONED_AGE: Duration = Duration::from_secs(3600);

impl Devices {
    /// Announces a deletion, and adds it to the batch that deletes the device.
    pub(super) async fn begin_deletion(&self, batch: Batch, path: DevicePath<'_>) -> Result<(Batch, Deletion), Error> {
        let at = self.clock.now();
        let value = serde_json::to_vec(&at)?;
        let announcement = Batch::new().put(store_keys::device_deletion(path)?, value.clone());
        // It expects nothing, so it cannot conflict.
        let _ = self.store.commit(announcement).await?;
        let deletion = Deletion { app_id: path.app_id.clone(), dev_id: path.dev_id.clone(), at, until: at };
        Ok((batch.put(store_keys::deleted_device(path)?, value), deletion))
    }

    /// Devices whose deletion was announced and has not ended, in order of their ids, after this one.
    pub async fn deletions(&self, after: Option<&(AppId, DevId)>) -> Result<Vec<(AppId, DevId)>, Error> {
        let prefix = store_keys::device_deletions()?;
        let after = after.map(|ids| store_keys::device_deletion(ids.into())).transpose()?;
        let announced = self.store.list(&prefix, after.as_ref(), READ_MAX).await?;
        announced.iter().map(|entry| store_keys::deleted_ids_of(&entry.key)).collect()
    }

    /// The deletion of a device that has not ended; none if the device was not deleted, or its application was, too.
    pub async fn deletion(&self, path: DevicePath<'_>) -> Result<Option<Deletion>, Error> {
        // Before the store is read, so that a device that gets the id now keeps its records.
        let now = self.clock.now();
        let keys = [store_keys::deleted_device(path)?, store_keys::device(path)?, store_keys::device_deletion(path)?];
        let [deleted, device, announced] = self.store.get_array(&keys).await?;
        let Some(deleted) = deleted else {
            self.forget_abandoned(announced, now).await?;
            return Ok(None);
        };
        let at = serde_json::from_slice(&deleted.value)?;
        let until = if device.is_some() { at } else { now };
        Ok(Some(Deletion { app_id: path.app_id.clone(), dev_id: path.dev_id.clone(), at, until }))
    }

    /// Forgets a deletion: history has deleted the records.
    pub async fn end_deletion(&self, deletion: &Deletion) -> Result<(), Error> {
        let Deletion { app_id, dev_id, at, .. } = deletion;
        let (path, value) = (DevicePath { app_id, dev_id }, serde_json::to_vec(at)?);
        // The announcement last, because nothing else finds the other.
        for key in [store_keys::deleted_device(path)?, store_keys::device_deletion(path)?] {
            let [entry] = self.store.get_array(&[key]).await?;
            // Another value is of a later deletion.
            if let Some(entry) = entry.filter(|entry| entry.value == value) {
                self.forget(entry).await?;
            }
        }
        Ok(())
    }

    /// Forgets an announcement without a deletion, unless that may still come.
    async fn forget_abandoned(&self, announced: Option<Entry>, now: Timestamp) -> Result<(), Error> {
        let Some(announced) = announced else { return Ok(()) };
        let at: Timestamp = serde_json::from_slice(&announced.value)?;
        if now.since(at) > ABANDONED_AGE { self.forget(announced).await } else { Ok(()) }
    }

    /// Deletes a record, unless it has changed since it was read.
    pub(super) async fn forget(&self, entry: Entry) -> Result<(), Error> {
        let batch = Batch::new().expect(entry.key.clone(), entry.version).delete(entry.key);
        // A conflict means that there is a later deletion or move.
        let _ = self.store.commit(batch).await?;
        Ok(())
    }
}
