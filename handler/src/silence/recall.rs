//! Silences that ended just before this process started: the process before it was told of an uplink, and ended before it
//! could set the alarm again. History has the uplink.

use server::status::ErrorChain;
use types::{AppId, DevId, DevicePath, Timestamp};

use super::{environment::Watcher, history::last_heard_before, turn::DEVICES};
use crate::Error;

impl Watcher {
    /// Has the alarms of devices looked at that were reported as silent, and heard before this process started.
    pub(super) async fn recall(&self, app_id: &AppId, started: Timestamp) -> Result<(), Error> {
        let history = self.with.history.as_deref().filter(|history| history.keeps(app_id));
        let Some(history) = history else { return Ok(()) };
        let heard = match last_heard_before(history, app_id, started).await {
            Ok(heard) => heard,
            Err(error) => {
                let error = ErrorChain(&error);
                tracing::warn!(%app_id, %error, "cannot look in history which silences ended before the start");
                return Ok(());
            }
        };
        let dev_ids: Vec<DevId> = heard.keys().cloned().collect();
        for dev_ids in dev_ids.chunks(DEVICES) {
            for found in self.with.devices.watched(app_id, dev_ids.to_vec()).await? {
                let reported = found.alarm.filter(|alarm| alarm.due.is_none());
                let last = heard.get(&found.dev_id).copied();
                if let (Some(alarm), Some(last)) = (reported, last)
                    && last > alarm.since
                {
                    self.with.last_heard.note_heard_before(DevicePath { app_id, dev_id: &found.dev_id }, last);
                }
            }
        }
        Ok(())
    }
}
