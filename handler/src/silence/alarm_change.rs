//! A change of the alarm of a device.

use std::time::Duration;

use store::{Batch, Entry, Key};
use types::{AppId, DevId, DevicePath, SilentAfter, Timestamp};

use super::next_step::NextStep;
use crate::{
    Error,
    registry::{alarm::Alarm, application::store_keys, device::WatchedDevice},
};

/// Time until an event that could not be published is published again. It is twice as long each time.
const RETRY_MIN: Duration = Duration::from_secs(60);
const RETRY_MAX: Duration = Duration::from_secs(900);

/// The alarm of a device before and after.
pub(super) struct AlarmChange {
    dev_id: DevId,
    before: Option<(Alarm, Entry)>,
    /// None if it is deleted.
    after: Option<Alarm>,
    /// A place in the order of time that no alarm has.
    stale: Option<Key>,
}

impl AlarmChange {
    /// None if nothing is to change.
    pub(super) fn of(next_step: NextStep, found: WatchedDevice) -> Option<Self> {
        let after = match next_step {
            NextStep::Keep | NextStep::Due(_) => return None,
            NextStep::Set(alarm) => Some(alarm),
            NextStep::Delete => None,
        };
        let WatchedDevice { dev_id, alarm, entry, .. } = found;
        Some(Self { dev_id, before: alarm.zip(entry), after, stale: None })
    }

    /// Notes that a silence was reported.
    pub(super) fn reported(found: WatchedDevice) -> Option<Self> {
        let alarm = found.alarm.clone()?.reported();
        Self::of(NextStep::Set(alarm), found)
    }

    /// Has a silence reported again later: outputs that have taken the event get it with each attempt.
    pub(super) fn retried(found: WatchedDevice, after: SilentAfter, now: Timestamp) -> Option<Self> {
        let alarm = found.alarm.clone()?;
        let overdue = now.since(alarm.since.plus(after.duration()));
        let due = now.plus(overdue.clamp(RETRY_MIN, RETRY_MAX));
        Self::of(NextStep::Set(alarm.due_at(due)), found)
    }

    /// Deletes a place that no alarm has, and takes the next step; none is that of a device that is gone.
    pub(super) fn stale(place: Key, found: WatchedDevice, next_step: Option<NextStep>) -> Self {
        let WatchedDevice { dev_id, alarm, entry, .. } = found;
        let before = alarm.zip(entry);
        let after = match next_step {
            Some(NextStep::Set(alarm)) => Some(alarm),
            Some(NextStep::Keep | NextStep::Due(_)) => before.as_ref().map(|(alarm, _)| alarm.clone()),
            Some(NextStep::Delete) | None => None,
        };
        Self { dev_id, before, after, stale: Some(place) }
    }

    /// Returns true if it brings the alarm forward, to before this time.
    pub(super) fn is_forward(&self, before: Timestamp) -> bool {
        let was_due = self.before.as_ref().and_then(|(alarm, _)| alarm.due);
        let due = self.after.as_ref().and_then(|alarm| alarm.due);
        due.is_some_and(|due| due < before && was_due.is_none_or(|was_due| due < was_due))
    }

    /// Adds it to a batch of its application, if the alarm is still as it was.
    pub(super) fn add_to(&self, batch: Batch, app_id: &AppId) -> Result<Batch, Error> {
        let path = DevicePath { app_id, dev_id: &self.dev_id };
        let (before, entry) = self.before.as_ref().map(|(alarm, entry)| (alarm, entry)).unzip();
        let mut batch = batch.expect_entry(&store_keys::alarm(path)?, entry);
        if let Some(stale) = &self.stale {
            batch = batch.delete(stale.clone());
        }
        match (&self.after, before) {
            // Its version stays: the same look may report the device.
            (Some(after), Some(before)) if after == before => Ok(batch),
            (Some(after), before) => after.put(batch, path, before),
            (None, Some(before)) => before.delete(batch, path),
            (None, None) => Ok(batch),
        }
    }
}
