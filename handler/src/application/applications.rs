//! The applications in the store.

use std::sync::Arc;

use store::{Batch, Commit, Entry, Key, Store};
use types::AppId;

use super::{
    model::{Application, ApplicationSummary},
    record, store_keys,
};
use crate::{Error, sealer::Sealer};

const FORMAT_BYTES_MAX: usize = 64;
const DELETE_RECORDS_MAX: usize = 256;
/// How often a change is attempted while others change the same application.
const SET_ATTEMPTS_MAX: usize = 8;

/// What happens to the access key for registering on join when an application is set.
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
    store: Arc<dyn Store>,
    sealer: Sealer,
}

impl Applications {
    /// The applications in `store`, with their access keys sealed by `sealer`.
    pub fn new(store: Arc<dyn Store>, sealer: Sealer) -> Self {
        Self { store, sealer }
    }

    /// Registers an application; [`Error::AlreadyExists`] if it is registered.
    pub async fn register(&self, app_id: &AppId) -> Result<(), Error> {
        let batch = Batch::new().expect_absent(store_keys::summary(app_id)?);
        match self.store.commit(self.put(batch, &Application::new(app_id.clone()))?).await? {
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
    pub(crate) async fn check_registered(&self, app_id: &AppId) -> Result<(), Error> {
        self.entry(app_id).await.map(drop)
    }

    /// Replaces the settings of a registered application; its access key only if `join_key` says so.
    pub async fn set(&self, mut application: Application, join_key: JoinKeyChange) -> Result<(), Error> {
        if application.summary().payload_format.len() > FORMAT_BYTES_MAX {
            return Err(Error::invalid("PayloadFormat", format_args!("at most {FORMAT_BYTES_MAX} bytes are allowed")));
        }
        if application.has_functions() {
            application = application.custom_by_default();
        }
        let set = store::retry(SET_ATTEMPTS_MAX, || self.try_set(application.clone(), join_key)).await?;
        set.ok_or_else(|| Error::Conflict(format!("application {}", application.summary().app_id)))
    }

    async fn try_set(&self, mut application: Application, join_key: JoinKeyChange) -> Result<Option<()>, Error> {
        let entry = self.entry(&application.summary().app_id).await?;
        if join_key == JoinKeyChange::Keep {
            let current = record::read_summary(&self.sealer, &entry.value)?;
            application = application.with_join_key(current.register_on_join_access_key);
        }
        let batch = self.put(Batch::new().expect(entry.key, entry.version), &application)?;
        Ok((self.store.commit(batch).await? == Commit::Done).then_some(()))
    }

    /// Deletes an application with everything it owns.
    ///
    /// Its own records go last, so that an interrupted deletion can be repeated.
    pub async fn delete(&self, app_id: &AppId) -> Result<(), Error> {
        let records = [self.entry(app_id).await?.key, store_keys::functions(app_id)?];
        self.delete_owned(app_id, &records, &Batch::new()).await?;
        let [summary, functions] = records.clone();
        let is_deleted = Batch::new().expect_absent(summary.clone());
        // This commit expects nothing, so it cannot conflict.
        let _ = self.store.commit(Batch::new().delete(summary).delete(functions)).await?;
        // A device may have been set after the first pass. From here on none can be, until the id is registered again.
        self.delete_owned(app_id, &records, &is_deleted).await
    }

    /// Deletes what an application owns except `records`, for as long as `expected` holds.
    async fn delete_owned(&self, app_id: &AppId, records: &[Key], expected: &Batch) -> Result<(), Error> {
        let all = store_keys::all(app_id)?;
        loop {
            let page = self.store.list(&all, None, DELETE_RECORDS_MAX).await?;
            let owned: Vec<Key> =
                page.into_iter().map(|entry| entry.key).filter(|key| !records.contains(key)).collect();
            if owned.is_empty() {
                return Ok(());
            }
            let batch = owned.into_iter().fold(expected.clone(), Batch::delete);
            if self.store.commit(batch).await? == Commit::Conflict {
                return Ok(());
            }
        }
    }

    fn put(&self, batch: Batch, application: &Application) -> Result<Batch, Error> {
        let summary = application.summary();
        Ok(batch
            .put(store_keys::summary(&summary.app_id)?, record::write_summary(&self.sealer, summary)?)
            .put(store_keys::functions(&summary.app_id)?, record::write_sources(application)?))
    }

    async fn entry(&self, app_id: &AppId) -> Result<Entry, Error> {
        let [entry] = self.store.get_array(&[store_keys::summary(app_id)?]).await?;
        entry.ok_or_else(|| Error::application_not_found(app_id))
    }
}
