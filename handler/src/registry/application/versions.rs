//! The versions of applications' functions in the store.
//!
//! The list of an application's versions is one record. The functions that are live are where uplinks always read them;
//! those of other versions are stored by hash, each once. All of these records have the application's tag: a commit
//! changes them together with the application, so a process that is killed leaves either everything or nothing of a
//! change.

mod comparison;
mod past_limits;

use std::{future::pending, panic::resume_unwind};

use store::{Batch, Commit, Entry};
use tokio::task::spawn_blocking;
use types::AppId;

use super::{
    applications::{Applications, SET_ATTEMPTS_MAX},
    model::{Application, ApplicationSummary},
    record, store_keys,
    version::{
        Abandonment, FunctionsVersion, ListedVersion, StoredVersion, VersionBounds, VersionLabel, VersionOrigin,
        VersionUse,
    },
    version_list::{Texts, VersionList},
};
use crate::Error;

/// The records of an application.
pub(super) struct StoredApplication {
    pub(super) summary: ApplicationSummary,
    entry: Entry,
    functions: Option<Entry>,
    versions: Option<Entry>,
}

impl Applications {
    /// Lists the versions of an application that are kept, the newest first.
    pub async fn versions(&self, app_id: &AppId) -> Result<Vec<ListedVersion>, Error> {
        let stored = self.stored(app_id).await?;
        let list = stored.list()?;
        let live = list.live().map(|live| live.number);
        let listed = |version: FunctionsVersion| ListedVersion { used: stored.used(version.number, live), version };
        Ok(list.into_newest_first().into_iter().map(listed).collect())
    }

    /// Gets a version, with the application as it was then; without a number the one that is live.
    ///
    /// [`Error::VersionNotFound`] says which ones are kept.
    pub async fn version(&self, app_id: &AppId, number: Option<u32>) -> Result<StoredVersion, Error> {
        // Another change may drop the text between the two reads.
        let found = store::retry(SET_ATTEMPTS_MAX, || self.try_version(app_id, number)).await?;
        found.ok_or_else(|| Error::Conflict(format!("application {app_id}")))
    }

    async fn try_version(&self, app_id: &AppId, number: Option<u32>) -> Result<Option<StoredVersion>, Error> {
        let stored = self.stored(app_id).await?;
        let list = stored.list()?;
        let found = number.map_or_else(|| list.live(), |number| list.get(number));
        let version = found.ok_or_else(|| not_found(app_id, number, &list))?.clone();
        let text = match (version.hash == stored.summary.functions_hash, &stored.functions) {
            (true, Some(functions)) => Some(functions.clone()),
            (true, None) => return Err(Error::FunctionsMissing(app_id.clone())),
            (false, _) => self.store.get_one(&store_keys::version_text(app_id, version.hash)?).await?,
        };
        let Some(text) = text else { return Ok(None) };
        let sources = record::read_sources(&text.value)?;
        let application = Application::with_functions(app_id.clone(), version.payload_format.clone(), sources);
        let used = stored.used(version.number, list.live().map(|live| live.number));
        Ok(Some(StoredVersion { version, application, used }))
    }

    /// Compares two versions: a unified diff of each function and of the payload format.
    pub async fn compare_versions(&self, app_id: &AppId, from: Option<u32>, to: Option<u32>) -> Result<String, Error> {
        let (from, to) = (self.version(app_id, from).await?, self.version(app_id, to).await?);
        // It may take longer than other tasks should wait.
        match spawn_blocking(move || comparison::compare(&from, &to)).await {
            Ok(diff) => Ok(diff),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The process ends, and nobody waits any more.
                Err(_) => pending().await,
            },
        }
    }

    /// Replaces the note and the link of a version.
    pub async fn label_version(&self, app_id: &AppId, number: u32, label: VersionLabel) -> Result<(), Error> {
        let labelled = store::retry(SET_ATTEMPTS_MAX, || self.try_label(app_id, number, label.clone())).await?;
        labelled.ok_or_else(|| Error::Conflict(format!("application {app_id}")))
    }

    async fn try_label(&self, app_id: &AppId, number: u32, label: VersionLabel) -> Result<Option<()>, Error> {
        let stored = self.stored(app_id).await?;
        let mut list = stored.list()?;
        if !list.label(number, label) {
            return Err(not_found(app_id, Some(number), &list));
        }
        let batch = stored.expect()?.put(store_keys::versions(app_id)?, serde_json::to_vec(&list)?);
        Ok((self.store.commit(batch.growing()).await? == Commit::Done).then_some(()))
    }

    /// Reads an application with its versions; [`Error::NotFound`] if it is not registered.
    pub(super) async fn stored(&self, app_id: &AppId) -> Result<StoredApplication, Error> {
        // One read for all records, so that they belong together.
        let keys = [store_keys::summary(app_id)?, store_keys::functions(app_id)?, store_keys::versions(app_id)?];
        let [entry, functions, versions] = self.store.get_array(&keys).await?;
        let entry = entry.ok_or_else(|| Error::application_not_found(app_id))?;
        let summary = record::read_summary(&self.sealer, &entry.value)?;
        Ok(StoredApplication { summary, entry, functions, versions })
    }
}

impl StoredApplication {
    /// A batch that is applied only if nothing has changed since.
    pub(super) fn expect(&self) -> Result<Batch, Error> {
        let versions = store_keys::versions(&self.summary.app_id)?;
        let batch = Batch::new().expect(self.entry.key.clone(), self.entry.version);
        Ok(batch.expect_entry(&versions, self.versions.as_ref()))
    }

    /// Adds the version of the application that is to be stored, whose functions have `bytes`, to a batch, and returns
    /// it. Functions that are live already stay the version that they are; a label becomes theirs.
    pub(super) fn add_version(
        &self,
        batch: Batch,
        (new, bytes): (&ApplicationSummary, usize),
        origin: VersionOrigin,
        bounds: VersionBounds,
    ) -> Result<(Batch, Option<FunctionsVersion>), Error> {
        let mut list = self.list()?;
        let before = list.texts();
        let is_live = |live: &FunctionsVersion| live.is_of(new);
        match list.live().filter(|live| is_live(live)).cloned() {
            Some(live) if origin.label.is_empty() => return Ok((batch, Some(live))),
            Some(live) => _ = list.label(live.number, origin.label.or(&live.origin.label)),
            None if self.is_empty() && !new.is_set_up() => return Ok((batch, None)),
            None => list.add(new, bytes, origin, bounds),
        }
        Ok((self.put_list(batch, &list, &before)?, list.live().cloned()))
    }

    /// Adds a version beside the live one, with its functions as they are stored, to a batch, and returns it.
    pub(super) fn add_candidate(
        &self,
        batch: Batch,
        (new, sources): (&ApplicationSummary, Vec<u8>),
        origin: VersionOrigin,
        bounds: VersionBounds,
    ) -> Result<(Batch, FunctionsVersion), Error> {
        let mut list = self.list()?;
        let before = list.texts();
        let version = list.add_candidate(new, sources.len(), origin, bounds);
        let batch = self.put_list(batch, &list, &before)?;
        // Those that are live are where they always are.
        let batch = match list.older_texts().contains_key(version.hash.as_bytes()) {
            true => batch.put(store_keys::version_text(&self.summary.app_id, version.hash)?, sources),
            false => batch,
        };
        Ok((batch, version))
    }

    /// Adds to a batch that a version was abandoned, if it is kept.
    pub(super) fn note_abandonment(&self, batch: Batch, number: u32, abandonment: Abandonment) -> Result<Batch, Error> {
        let mut list = self.list()?;
        if !list.abandon(number, abandonment) {
            return Ok(batch);
        }
        let versions = store_keys::versions(&self.summary.app_id)?;
        let batch = batch.expect_entry(&versions, self.versions.as_ref());
        Ok(batch.put(versions, serde_json::to_vec(&list)?))
    }

    /// Makes another version live, whose functions are stored as `text` unless they are live already, and returns it.
    /// None if it is not there any more.
    pub(super) fn make_live(
        &self,
        batch: Batch,
        number: u32,
        text: Option<&Entry>,
        bounds: VersionBounds,
    ) -> Result<Option<(Batch, FunctionsVersion)>, Error> {
        let mut list = self.list()?;
        let before = list.texts();
        let Some(version) = list.make_live(number, bounds) else { return Ok(None) };
        let batch = self.put_list(batch, &list, &before)?;
        if version.hash == self.summary.functions_hash {
            return Ok(Some((batch, version)));
        }
        let functions = store_keys::functions(&self.summary.app_id)?;
        Ok(text.map(|text| (batch.put(functions, text.value.clone()), version)))
    }

    /// Stores a list, the functions that were live if an older version has them now, and none that no version has any
    /// more.
    fn put_list(&self, batch: Batch, list: &VersionList, before: &Texts) -> Result<Batch, Error> {
        let (app_id, after) = (&self.summary.app_id, list.older_texts());
        let mut batch = batch.put(store_keys::versions(app_id)?, serde_json::to_vec(list)?);
        for hash in before.keys().filter(|hash| !after.contains_key(*hash)) {
            batch = batch.delete(store_keys::version_text_of(app_id, hash)?);
        }
        if let Some(functions) = &self.functions
            && after.contains_key(self.summary.functions_hash.as_bytes())
        {
            batch = batch.put(store_keys::version_text(app_id, self.summary.functions_hash)?, functions.value.clone());
        }
        Ok(batch)
    }

    /// Returns the devices that have a version.
    fn used(&self, number: u32, live: Option<u32>) -> VersionUse {
        match &self.summary.candidate {
            Some(candidate) if candidate.version == number => VersionUse::Share(candidate.trial.share),
            _ if live == Some(number) => VersionUse::Live,
            _ => VersionUse::Older,
        }
    }

    /// Returns true if the application was registered, and has not been set up since.
    fn is_empty(&self) -> bool {
        self.versions.is_none() && !self.summary.is_set_up()
    }

    fn list(&self) -> Result<VersionList, Error> {
        let mut list: VersionList = match &self.versions {
            Some(record) => serde_json::from_slice(&record.value)?,
            None => VersionList::default(),
        };
        list.follow(&self.summary, self.functions.as_ref().map(|functions| functions.value.len()));
        Ok(list)
    }
}

fn not_found(app_id: &AppId, number: Option<u32>, list: &VersionList) -> Error {
    Error::VersionNotFound { app_id: app_id.clone(), number: number.unwrap_or_default(), kept: list.describe() }
}
