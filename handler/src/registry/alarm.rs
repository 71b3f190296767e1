//! Alarms: when a device that sends nothing counts as silent, as the store has it.
//!
//! Each device has a record, and while its time runs a key in the order of time, so that those that are due are found
//! without reading others. An uplink changes neither: they are looked at once the time is over.

use serde::{Deserialize, Serialize};
use store::{Batch, Entry, Key};
use types::{DevicePath, SilentAfter, Timestamp};

use super::application::store_keys;
use crate::Error;

/// The alarm of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Alarm {
    /// The time of silence is counted from here: when the device was last heard, or else its alarm was set.
    pub(crate) since: Timestamp,
    /// When the device was last heard, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_seen: Option<Timestamp>,
    /// When it counts as silent; none once that was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) due: Option<Timestamp>,
}

impl Alarm {
    /// For a device that was heard.
    pub(crate) fn heard(at: Timestamp, after: SilentAfter) -> Self {
        Self { last_seen: Some(at), ..Self::set(at, None, after) }
    }

    /// For a device that is watched from now on.
    pub(crate) fn set(now: Timestamp, last_seen: Option<Timestamp>, after: SilentAfter) -> Self {
        Self { since: now, last_seen, due: Some(now.plus(after.duration())) }
    }

    /// The same, due at another time.
    pub(crate) fn due_at(self, due: Timestamp) -> Self {
        Self { due: Some(due), ..self }
    }

    /// The same, once its silence was reported.
    pub(crate) fn reported(self) -> Self {
        Self { due: None, ..self }
    }

    /// Reads what is stored, if anything is.
    pub(crate) fn read(entry: Option<&Entry>) -> Result<Option<Self>, Error> {
        Ok(entry.map(|entry| serde_json::from_slice(&entry.value)).transpose()?)
    }

    /// Stores it in place of another one.
    pub(crate) fn put(&self, mut batch: Batch, path: DevicePath<'_>, before: Option<&Self>) -> Result<Batch, Error> {
        if let Some(place) = before.map(|before| before.place(path)).transpose()?.flatten() {
            batch = batch.delete(place);
        }
        if let Some(place) = self.place(path)? {
            batch = batch.put(place, "");
        }
        Ok(batch.put(store_keys::alarm(path)?, serde_json::to_vec(self)?))
    }

    pub(crate) fn delete(&self, batch: Batch, path: DevicePath<'_>) -> Result<Batch, Error> {
        let batch = batch.delete(store_keys::alarm(path)?);
        Ok(match self.place(path)? {
            Some(place) => batch.delete(place),
            None => batch,
        })
    }

    /// Its key in the order of time.
    pub(crate) fn place(&self, DevicePath { app_id, dev_id }: DevicePath<'_>) -> Result<Option<Key>, Error> {
        self.due.map(|due| store_keys::due_alarm(app_id, due, dev_id)).transpose()
    }
}
