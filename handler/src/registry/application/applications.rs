//! The applications in the store.

use std::sync::Arc;

use store::{Batch, Commit, Entry, Key, Store};
use types::{AppId, Kind, Kinded};

use super::{
    deletion::Interrupted,
    eui_holder,
    model::{Application, ApplicationSummary},
    record, store_keys,
    version::{FunctionsVersion, VersionBounds, VersionOrigin},
};
use crate::{Error, registry::sealer::Sealer};

const DELETE_RECORDS_MAX: usize = 256;
/// Maximum number of attempts of a change while others change the same application.
pub(super) const SET_ATTEMPTS_MAX: usize = 8;

/// Handling of the access key for registering on join when an application is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKeyChange {
    /// It is set too.
    Replace,
    /// Keep the key: the caller may not know it.
    Keep,
}

/// The applications that are registered on this handler.
#[derive(Clone)]
pub struct Applications {
    pub(super) store: Arc<dyn Store>,
    pub(super) sealer: Sealer,
    interrupted: Arc<Interrupted>,
    pub(super) version_bounds: VersionBounds,
}

impl Applications {
    /// The applications in `store`, with their access keys sealed by `sealer`.
    pub fn new(store: Arc<dyn Store>, sealer: Sealer) -> Self {
        Self { store, sealer, interrupted: Arc::default(), version_bounds: VersionBounds::default() }
    }

    /// The same applications, which keep this many versions of their functions.
    pub fn with_version_bounds(self, version_bounds: VersionBounds) -> Self {
        Self { version_bounds, ..self }
    }

    /// Registers an application; [`Error::AlreadyExists`] if it is registered.
    pub async fn register(&self, app_id: &AppId) -> Result<(), Error> {
        // The new application must not inherit the devices of a deleted one.
        self.finish_deletion(app_id).await?;
        let batch = Batch::new().expect_absent(store_keys::summary(app_id)?);
        let application = Application::new(app_id.clone());
        let batch = self.put(batch, &application, record::write_sources(&application)?)?;
        match self.store.commit(batch.growing()).await? {
            Commit::Done => Ok(()),
            Commit::Conflict => Err(Error::already_exists("Application", app_id)),
        }
    }

    /// Gets an application; [`Error::NotFound`] if it is not registered.
    pub async fn get(&self, app_id: &AppId) -> Result<Application, Error> {
        // One read for both records, so that they belong together.
        let keys = [store_keys::summary(app_id)?, store_keys::functions(app_id)?];
        let [summary, sources] = self.store.get_array(&keys).await?;
        let summary = summary.ok_or_else(|| Error::application_not_found(app_id))?;
        let sources = sources.ok_or_else(|| Error::FunctionsMissing(app_id.clone()))?;
        let summary = record::read_summary(&self.sealer, &summary.value)?;
        Ok(Application::from_parts(summary, record::read_sources(&sources.value)?))
    }

    /// Gets the summary of an application; [`Error::NotFound`] if it is not registered.
    pub async fn summary(&self, app_id: &AppId) -> Result<ApplicationSummary, Error> {
        record::read_summary(&self.sealer, &self.entry(app_id).await?.value)
    }

    /// Succeeds if an application is registered; [`Error::NotFound`] otherwise.
    pub async fn check_registered(&self, app_id: &AppId) -> Result<(), Error> {
        self.entry(app_id).await.map(drop)
    }

    /// Replaces the settings of a registered application; its access key only if `join_key` says so.
    ///
    /// Functions or a payload format that are not live yet become a new version, with this origin; for all devices, so
    /// [`Error::CandidateExists`] if a share of them has others. Returns the version that is live then; none if nothing
    /// has ever been set.
    pub async fn set(
        &self,
        application: Application,
        join_key: JoinKeyChange,
        origin: VersionOrigin,
    ) -> Result<Option<FunctionsVersion>, Error> {
        let application = application.checked()?;
        let set = match self.set_within(self.version_bounds, &application, join_key, &origin).await {
            // Without older versions, functions can be mended also where there is no room for more.
            Err(error) if error.kind() == Kind::Full => {
                self.set_within(self.version_bounds.without_older(), &application, join_key, &origin).await?
            }
            set => set?,
        };
        set.ok_or_else(|| Error::Conflict(format!("application {}", application.summary().app_id)))
    }

    async fn set_within(
        &self,
        bounds: VersionBounds,
        application: &Application,
        join_key: JoinKeyChange,
        origin: &VersionOrigin,
    ) -> Result<Option<Option<FunctionsVersion>>, Error> {
        store::retry(SET_ATTEMPTS_MAX, || self.try_set(bounds, application.clone(), join_key, origin.clone())).await
    }

    async fn try_set(
        &self,
        bounds: VersionBounds,
        mut application: Application,
        join_key: JoinKeyChange,
        origin: VersionOrigin,
    ) -> Result<Option<Option<FunctionsVersion>>, Error> {
        let stored = self.stored(&application.summary().app_id).await?;
        if !stored.summary.has_functions_of(application.summary()) {
            stored.summary.check_without_candidate()?;
        }
        application = application.with_rest_of(&stored.summary);
        if join_key == JoinKeyChange::Keep {
            application = application.with_join_key(stored.summary.register_on_join_access_key.clone());
        }
        let sources = record::write_sources(&application)?;
        let new = (application.summary(), sources.len());
        let (batch, version) = stored.add_version(stored.expect()?, new, origin, bounds)?;
        let application = application.with_version(version.as_ref().map(|version| version.number));
        let batch = self.put(batch, &application, sources)?.growing();
        Ok((self.store.commit(batch).await? == Commit::Done).then_some(version))
    }

    /// Deletes an application with everything it owns; [`Error::NotFound`] if it is not registered.
    ///
    /// It is gone with the first commit. What it owned follows; [`Self::complete_deletion`] completes that after an
    /// interruption, until [`Self::end_deletion`] says that nobody needs to be told any more.
    pub async fn delete(&self, app_id: &AppId) -> Result<(), Error> {
        let begun = self.interrupted.begin();
        let outcome = self.try_delete(app_id).await;
        if matches!(outcome, Ok(()) | Err(Error::NotFound { .. })) {
            begun.end();
        }
        outcome
    }

    /// Waits until a deletion fails, or its caller does not wait for its end, or [`Self::note_interruption`] is called.
    pub async fn deletion_interrupted(&self) {
        self.interrupted.wait().await;
    }

    /// Wakes whoever completes interrupted deletions: something that is completed beside them was interrupted.
    pub fn note_interruption(&self) {
        self.interrupted.note();
    }

    async fn try_delete(&self, app_id: &AppId) -> Result<(), Error> {
        let summary = match self.entry(app_id).await {
            Ok(summary) => summary.key,
            Err(error @ Error::NotFound { .. }) => {
                return if self.delete_rest(app_id).await?.is_some() { Ok(()) } else { Err(error) };
            }
            Err(error) => return Err(error),
        };
        // These commits expect nothing, so they cannot conflict.
        let _ = self.store.commit(Batch::new().put(store_keys::deletion(app_id)?, "")).await?;
        let _ = self.store.commit(Batch::new().delete(summary).delete(store_keys::functions(app_id)?)).await?;
        self.delete_rest(app_id).await.map(drop)
    }

    /// Forgets that an application was deleted, if nothing of it is left.
    pub async fn end_deletion(&self, app_id: &AppId) -> Result<(), Error> {
        self.finish_deletion(app_id).await
    }

    /// Applications whose deletion has not ended, in order of their ids, after this one.
    pub async fn deletions(&self, after: Option<&AppId>) -> Result<Vec<AppId>, Error> {
        let prefix = store_keys::deletions()?;
        let after = after.map(store_keys::deletion).transpose()?;
        let deletions = self.store.list(&prefix, after.as_ref(), DELETE_RECORDS_MAX).await?;
        let app_id = |entry: &Entry| entry.key.path().strip_prefix(prefix.path()).unwrap_or_default().parse();
        Ok(deletions.iter().map(app_id).collect::<Result<_, _>>()?)
    }

    /// Completes the deletion of an application. Returns false if there is none, or the application exists again.
    pub async fn complete_deletion(&self, app_id: &AppId) -> Result<bool, Error> {
        Ok(self.delete_rest(app_id).await?.is_some())
    }

    /// Deletes what a deleted application owned, and the record of its deletion.
    async fn finish_deletion(&self, app_id: &AppId) -> Result<(), Error> {
        let Some(deletion) = self.delete_rest(app_id).await? else { return Ok(()) };
        let batch = Batch::new().expect(deletion.key.clone(), deletion.version).delete(deletion.key);
        // A conflict means that the application was registered and deleted again, which has its own end.
        let _ = self.store.commit(batch).await?;
        Ok(())
    }

    /// Deletes what a deleted application owned. Returns the record of its deletion; none if there is no such deletion,
    /// or the application exists.
    async fn delete_rest(&self, app_id: &AppId) -> Result<Option<Entry>, Error> {
        let summary = store_keys::summary(app_id)?;
        let mut found = self.store.get(&[store_keys::deletion(app_id)?, summary.clone()]).await?.into_iter();
        let (Some(deletion), None) = (found.next().flatten(), found.next().flatten()) else { return Ok(None) };
        self.delete_owned(app_id, &Batch::new().expect_absent(summary)).await?;
        Ok(Some(deletion))
    }

    /// Deletes all records of an application, for as long as `expected` holds.
    async fn delete_owned(&self, app_id: &AppId, expected: &Batch) -> Result<(), Error> {
        let all = store_keys::all(app_id)?;
        loop {
            let owned = self.store.list(&all, None, DELETE_RECORDS_MAX).await?;
            if owned.is_empty() {
                return Ok(());
            }
            let owned: Vec<Key> = owned.into_iter().map(|entry| entry.key).collect();
            let held = eui_holder::held_by(app_id, &eui_holder::keys_of(&owned)?, self.store.as_ref()).await?;
            let batch = owned.into_iter().fold(expected.clone(), Batch::delete);
            if self.store.commit(batch).await? == Commit::Conflict {
                return Ok(());
            }
            eui_holder::release(held, self.store.as_ref()).await;
        }
    }

    fn put(&self, batch: Batch, application: &Application, sources: Vec<u8>) -> Result<Batch, Error> {
        let summary = application.summary();
        Ok(self.put_summary(batch, summary)?.put(store_keys::functions(&summary.app_id)?, sources))
    }

    pub(super) fn put_summary(&self, batch: Batch, summary: &ApplicationSummary) -> Result<Batch, Error> {
        Ok(batch.put(store_keys::summary(&summary.app_id)?, record::write_summary(&self.sealer, summary)?))
    }

    pub(super) async fn entry(&self, app_id: &AppId) -> Result<Entry, Error> {
        let entry = self.store.get_one(&store_keys::summary(app_id)?).await?;
        entry.ok_or_else(|| Error::application_not_found(app_id))
    }
}
