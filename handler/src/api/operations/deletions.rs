//! Deletions of applications and devices: what is left of them once they are gone from the store. Interrupted moves of
//! devices are completed beside them.

use std::time::Duration;

use server::status::ErrorChain;
use tokio::time::{sleep, timeout};
use types::{AppId, Credential, DevicePath};

use super::Operations;
use crate::{Error, registry::device::Deletion};

/// Interval at which interrupted deletions are searched for, besides those of applications by this process.
const INTERVAL: Duration = Duration::from_secs(300);
/// Pause before deletions that failed are tried again.
const WAIT: Duration = Duration::from_secs(10);

impl Operations {
    /// Completes interrupted deletions and moves of devices, of this process and of others; runs until it is dropped.
    pub async fn complete_deletions(&self) {
        loop {
            // One kind does not hold up the other.
            let applications = self.resume_applications().await;
            let moves = self.resume_moves().await;
            match applications.and(moves).and(self.resume_devices().await) {
                Ok(()) => _ = timeout(INTERVAL, self.applications.deletion_interrupted()).await,
                Err(error) => {
                    tracing::warn!(error = %ErrorChain(&error), "cannot complete a deletion or a move: trying again");
                    sleep(WAIT).await;
                }
            }
        }
    }

    /// Completes the deletions of applications that were interrupted. The first error ends it.
    async fn resume_applications(&self) -> Result<(), Error> {
        let mut last = None;
        loop {
            let deleted = self.applications.deletions(last.as_ref()).await?;
            for app_id in &deleted {
                if self.applications.complete_deletion(app_id).await? {
                    tracing::info!(%app_id, "completed the deletion of an application");
                    self.withdraw(None, app_id).await;
                }
            }
            last = deleted.into_iter().last();
            if last.is_none() {
                return Ok(());
            }
        }
    }

    /// Completes the deletions of devices that were interrupted. One that fails does not hold up the others; the first
    /// error is returned.
    async fn resume_devices(&self) -> Result<(), Error> {
        let (mut last, mut result) = (None, Ok(()));
        loop {
            let deleted = self.devices.deletions(last.as_ref()).await?;
            for ids in &deleted {
                result = result.and(self.resume_device(ids.into()).await);
            }
            last = deleted.into_iter().last();
            if last.is_none() {
                return result;
            }
        }
    }

    /// A device that has the id by now keeps its records.
    async fn resume_device(&self, path: DevicePath<'_>) -> Result<(), Error> {
        let Some(deletion) = self.devices.deletion(path).await? else { return Ok(()) };
        let DevicePath { app_id, dev_id } = path;
        self.history.remove_device_until(app_id, dev_id, deletion.until).await?;
        tracing::info!(%app_id, %dev_id, "completed the deletion of a device");
        self.devices.end_deletion(&deletion).await
    }

    /// Deletes the records of a device that was deleted just now. If that fails, it is resumed later.
    pub(super) async fn delete_history(&self, deletion: &Deletion) -> Result<(), Error> {
        self.history.remove_device(&deletion.app_id, &deletion.dev_id).await?;
        self.devices.end_deletion(deletion).await
    }

    /// Registers an application, which inherits nothing from a deleted one.
    pub(super) async fn register(&self, app_id: &AppId) -> Result<(), Error> {
        // Registering it ends the deletion, so this is the last chance.
        if self.applications.complete_deletion(app_id).await? {
            self.history.remove_application(app_id).await?;
        }
        self.applications.register(app_id).await
    }

    /// Withdraws the announcement of a deleted application. If that fails now, it is tried again later.
    pub(super) async fn withdraw(&self, caller: Option<Credential>, app_id: &AppId) {
        if let Err(error) = self.history.remove_application(app_id).await {
            tracing::warn!(%app_id, error = %ErrorChain(&error), "cannot delete the history of an application: trying again");
            return;
        }
        let is_withdrawn = match &self.announcer {
            Some(announcer) => announcer.remove_application(caller, app_id).await,
            None => true,
        };
        if is_withdrawn && let Err(error) = self.applications.end_deletion(app_id).await {
            tracing::warn!(%app_id, error = %ErrorChain(&error), "cannot end the deletion of an application: trying again");
        }
    }
}
