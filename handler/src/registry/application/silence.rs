//! The time after which the devices of an application count as silent, and which applications have one.
//!
//! The time is in the summary of the application, so that every uplink reads it with that. A record under the tag of the
//! service names the application until nothing is left of its alarms.

use bytes::Bytes;
use store::{Batch, Commit, Entry};
use types::{AppId, SilentAfter};

use super::{
    applications::{Applications, SET_ATTEMPTS_MAX},
    model::ApplicationSummary,
    record, store_keys,
};
use crate::Error;

/// Number of applications read at once.
const READ_MAX: usize = 1000;
/// Number of alarms deleted at once.
const DELETE_MAX: usize = 256;
/// Number of commits with which a look deletes alarms of an application, so that others do not wait for long.
const DELETIONS_MAX: u32 = 64;

/// An application whose devices have alarms, or had.
pub(crate) struct WatchedApplication {
    pub(crate) app_id: AppId,
    /// Its summary; none if it was deleted.
    pub(crate) summary: Option<Entry>,
    /// None if its devices never count as silent.
    pub(crate) after: Option<SilentAfter>,
    /// Names it. The value is the time by which the alarms of all its devices are set.
    pub(crate) name: Entry,
}

impl WatchedApplication {
    /// Returns true if the alarms of some devices may be set by another time.
    pub(crate) fn is_outdated(&self) -> bool {
        self.after.is_some_and(|after| *self.name.value != *value(after))
    }
}

impl Applications {
    /// Sets the time after which devices count as silent; none for never.
    pub async fn set_silent_after(&self, app_id: &AppId, after: Option<SilentAfter>) -> Result<(), Error> {
        self.check_registered(app_id).await?;
        // First, because nothing else finds the application after a kill.
        self.name_watched(app_id).await?;
        let set = || async move {
            let entry = self.entry(app_id).await?;
            let summary = record::read_summary(&self.sealer, &entry.value)?;
            let summary = ApplicationSummary { silent_after: after, ..summary };
            let batch = self.put_summary(Batch::new().expect(entry.key, entry.version), &summary)?;
            Ok::<_, Error>((self.store.commit(batch).await? == Commit::Done).then_some(()))
        };
        let set = store::retry(SET_ATTEMPTS_MAX, set).await?;
        set.ok_or_else(|| Error::Conflict(format!("application {app_id}")))?;
        // Again, because a look that came between the two saw no time, and may have deleted the name.
        self.name_watched(app_id).await
    }

    /// Has the application looked at, and the alarms of all its devices set.
    async fn name_watched(&self, app_id: &AppId) -> Result<(), Error> {
        // It expects nothing, so it cannot conflict.
        let _ = self.store.commit(Batch::new().put(store_keys::watched(app_id)?, "")).await?;
        Ok(())
    }

    /// Names of such applications, after this one.
    pub(crate) async fn watched(&self, after: Option<&AppId>) -> Result<Vec<Entry>, Error> {
        let after = after.map(store_keys::watched).transpose()?;
        Ok(self.store.list(&store_keys::all_watched()?, after.as_ref(), READ_MAX).await?)
    }

    /// The application of such a name.
    pub(crate) async fn watched_application(&self, name: Entry) -> Result<WatchedApplication, Error> {
        let app_id = store_keys::watched_app_of(&name.key)?;
        let summary = self.store.get_one(&store_keys::summary(&app_id)?).await?;
        let read = |entry: &Entry| serde_json::from_slice::<ApplicationSummary>(&entry.value);
        let after = summary.as_ref().map(read).transpose()?.and_then(|summary| summary.silent_after);
        Ok(WatchedApplication { app_id, summary, after, name })
    }

    /// Notes that the alarms of all devices are set by the time of the application, unless it was set again.
    pub(crate) async fn note_alarms_set(&self, watched: &WatchedApplication) -> Result<(), Error> {
        let Some(after) = watched.after else { return Ok(()) };
        self.rename(&watched.name, value(after)).await
    }

    /// Has the alarms of all devices of the application with this name be set again.
    pub(crate) async fn note_alarms_outdated(&self, name: &Entry) -> Result<(), Error> {
        self.rename(name, Bytes::new()).await
    }

    /// Has all handlers look at the application: an alarm is due before they would, and one of them may have heard the
    /// device.
    pub(crate) async fn note_alarms_forward(&self, watched: &WatchedApplication) -> Result<(), Error> {
        let Some(Entry { key, value, version }) = self.store.get_one(&watched.name.key).await? else { return Ok(()) };
        // After a conflict, somebody else has had them look.
        _ = self.store.commit(Batch::new().expect(key.clone(), version).put(key, value)).await?;
        Ok(())
    }

    async fn rename(&self, name: &Entry, value: Bytes) -> Result<(), Error> {
        let batch = Batch::new().expect(name.key.clone(), name.version).put(name.key.clone(), value);
        // After a conflict, the next look does what has to be done.
        let _ = self.store.commit(batch).await?;
        Ok(())
    }

    /// Deletes the alarms of an application whose devices never count as silent, and its name.
    pub(crate) async fn delete_alarms(
        &self,
        WatchedApplication { app_id, summary, name, .. }: &WatchedApplication,
    ) -> Result<(), Error> {
        if let Some(summary) = summary {
            let mut commits = 0..DELETIONS_MAX;
            // Alarms before their places: one without a place would never be due if the time is set again meanwhile.
            for prefix in [store_keys::alarms(app_id)?, store_keys::due_alarms(app_id)?] {
                loop {
                    let alarms = self.store.list(&prefix, None, DELETE_MAX).await?;
                    if alarms.is_empty() {
                        break;
                    }
                    if commits.next().is_none() {
                        // The next look goes on.
                        return Ok(());
                    }
                    // Unless the time was set again.
                    let unchanged = Batch::new().expect(summary.key.clone(), summary.version);
                    let batch = alarms.into_iter().fold(unchanged, |batch, alarm| batch.delete(alarm.key));
                    if self.store.commit(batch).await? == Commit::Conflict {
                        return Ok(());
                    }
                }
            }
        }
        let batch = Batch::new().expect(name.key.clone(), name.version).delete(name.key.clone());
        // A conflict means that the time was set again.
        let _ = self.store.commit(batch).await?;
        Ok(())
    }
}

/// The stored form of a time, with the name of an application.
fn value(after: SilentAfter) -> Bytes {
    Bytes::from(after.as_secs().to_string())
}
