//! The candidates of applications in the store.
//!
//! The candidate is in the record of its application, so that every uplink reads it with that, and all handlers agree.
//! Its functions are those of a version. What came of uplinks is a record of its own.

use store::{Batch, Commit, Entry};
use types::{AppId, DevicePath, Kind, Kinded};

use super::{Candidate, Counts, Trial};
use crate::{
    Error,
    registry::application::{
        applications::{Applications, SET_ATTEMPTS_MAX},
        model::{Application, ApplicationSummary},
        record, store_keys,
        version::{FunctionsVersion, VersionBounds, VersionOrigin},
    },
};

/// A candidate and its counts so far.
#[derive(Clone, Debug)]
pub struct CandidateState {
    /// The version on trial, and its share of the devices.
    pub candidate: Candidate,
    /// The version that the other devices have, if it is known.
    pub live: Option<u32>,
    /// Uplinks and failures of both versions, as far as they are stored.
    pub counts: Counts,
}

impl Applications {
    /// Gets an application as a device has it: with the functions of the candidate, if it is in its share.
    pub(crate) async fn get_for(&self, path: DevicePath<'_>) -> Result<Application, Error> {
        // Another change may move the text between the two reads.
        let found = store::retry(SET_ATTEMPTS_MAX, || self.try_get_for(path)).await?;
        found.ok_or_else(|| Error::FunctionsMissing(path.app_id.clone()))
    }

    async fn try_get_for(&self, DevicePath { app_id, dev_id }: DevicePath<'_>) -> Result<Option<Application>, Error> {
        let (live, sources) = self.get(app_id).await?.into_parts();
        let live_hash = live.functions_hash;
        let summary = live.for_device(dev_id);
        if summary.functions_hash == live_hash {
            return Ok(Some(Application::from_parts(summary, sources)));
        }
        let text = self.store.get_one(&store_keys::version_text(app_id, summary.functions_hash)?).await?;
        let sources = text.map(|text| record::read_sources(&text.value)).transpose()?;
        Ok(sources.map(|sources| Application::from_parts(summary, sources)))
    }

    /// Gives a share of the devices these functions, as a new version with this origin.
    ///
    /// [`Error::CandidateExists`] if others have one already, [`Error::Invalid`] if they are live, or nothing is.
    pub async fn start_candidate(
        &self,
        application: Application,
        trial: Trial,
        origin: VersionOrigin,
    ) -> Result<FunctionsVersion, Error> {
        let application = application.checked()?;
        let start = |bounds: VersionBounds| {
            let (application, origin) = (&application, &origin);
            store::retry(SET_ATTEMPTS_MAX, move || self.try_start(bounds, application, trial, origin.clone()))
        };
        let started = match start(self.version_bounds).await {
            // As when functions are set for all devices.
            Err(error) if error.kind() == Kind::Full => start(self.version_bounds.without_older()).await?,
            started => started?,
        };
        started.ok_or_else(|| conflict(&application.summary().app_id))
    }

    async fn try_start(
        &self,
        bounds: VersionBounds,
        application: &Application,
        trial: Trial,
        origin: VersionOrigin,
    ) -> Result<Option<FunctionsVersion>, Error> {
        let new = application.summary();
        let stored = self.stored(&new.app_id).await?;
        stored.summary.check_without_candidate()?;
        if !stored.summary.is_set_up() {
            let rule = "there are no functions to compare these with: set them for all devices first";
            return Err(Error::invalid("Share", rule));
        }
        if stored.summary.has_functions_of(new) {
            return Err(Error::invalid("Share", "these functions are live for all devices already"));
        }
        let sources = record::write_sources(application)?;
        let (batch, version) = stored.add_candidate(stored.expect()?, (new, sources), origin, bounds)?;
        let candidate = Candidate {
            version: version.number,
            functions_hash: new.functions_hash,
            payload_format: new.payload_format.clone(),
            has_uplink_function: new.has_uplink_function,
            trial,
        };
        let summary = ApplicationSummary { candidate: Some(candidate), ..stored.summary };
        let batch = self.put_summary(batch, &summary)?.delete(store_keys::candidate_counts(&summary.app_id)?);
        Ok((self.store.commit(batch.growing()).await? == Commit::Done).then_some(version))
    }

    /// Gets the candidate of an application; [`Error::NoCandidate`] if there is none.
    pub async fn candidate(&self, app_id: &AppId) -> Result<CandidateState, Error> {
        let (_, summary, counts) = self.with_counts(app_id).await?;
        let candidate = summary.candidate.ok_or_else(|| Error::NoCandidate(app_id.clone()))?;
        let counts = read_counts(counts.as_ref(), candidate.version)?;
        Ok(CandidateState { candidate, live: summary.version, counts })
    }

    /// Changes the share of a candidate, and when it is abandoned.
    pub async fn set_trial(&self, app_id: &AppId, trial: Trial) -> Result<(), Error> {
        let set = || async move {
            let (entry, mut summary, _) = self.with_counts(app_id).await?;
            summary.candidate.as_mut().ok_or_else(|| Error::NoCandidate(app_id.clone()))?.trial = trial;
            let batch = self.put_summary(Batch::new().expect(entry.key, entry.version), &summary)?;
            Ok::<_, Error>((self.store.commit(batch).await? == Commit::Done).then_some(()))
        };
        store::retry(SET_ATTEMPTS_MAX, set).await?.ok_or_else(|| conflict(app_id))
    }

    /// Makes a candidate live for all devices; [`Error::Conflict`] if it is another one by now.
    pub async fn promote_candidate(&self, app_id: &AppId, version: u32) -> Result<FunctionsVersion, Error> {
        let promoted = store::retry(SET_ATTEMPTS_MAX, || self.try_promote(app_id, version)).await?;
        promoted.ok_or_else(|| conflict(app_id))
    }

    async fn try_promote(&self, app_id: &AppId, version: u32) -> Result<Option<FunctionsVersion>, Error> {
        let stored = self.stored(app_id).await?;
        let candidate = stored.summary.candidate.clone().ok_or_else(|| Error::NoCandidate(app_id.clone()))?;
        if candidate.version != version {
            return Err(conflict(app_id));
        }
        let text = self.store.get_one(&store_keys::version_text(app_id, candidate.functions_hash)?).await?;
        let promoted = stored.make_live(stored.expect()?, candidate.version, text.as_ref(), self.version_bounds)?;
        // Somebody else ended it between the two reads.
        let Some((batch, version)) = promoted else { return Ok(None) };
        let Candidate { functions_hash, payload_format, has_uplink_function, .. } = candidate;
        let summary = ApplicationSummary {
            functions_hash,
            payload_format,
            has_uplink_function,
            version: Some(version.number),
            candidate: None,
            ..stored.summary
        };
        let batch = self.put_summary(batch, &summary)?.delete(store_keys::candidate_counts(app_id)?);
        Ok((self.store.commit(batch).await? == Commit::Done).then_some(version))
    }

    /// Ends a candidate: all devices have the live version again. It stays in the list as an older version.
    pub async fn abandon_candidate(&self, app_id: &AppId) -> Result<Candidate, Error> {
        let abandon = || async move {
            let (entry, mut summary, _) = self.with_counts(app_id).await?;
            let candidate = summary.candidate.take().ok_or_else(|| Error::NoCandidate(app_id.clone()))?;
            let batch = self.put_summary(Batch::new().expect(entry.key, entry.version), &summary)?;
            let batch = batch.delete(store_keys::candidate_counts(app_id)?);
            Ok::<_, Error>((self.store.commit(batch).await? == Commit::Done).then_some(candidate))
        };
        store::retry(SET_ATTEMPTS_MAX, abandon).await?.ok_or_else(|| conflict(app_id))
    }

    /// Reads an application with what is known about its candidate.
    pub(super) async fn with_counts(
        &self,
        app_id: &AppId,
    ) -> Result<(Entry, ApplicationSummary, Option<Entry>), Error> {
        let keys = [store_keys::summary(app_id)?, store_keys::candidate_counts(app_id)?];
        let [entry, counts] = self.store.get_array(&keys).await?;
        let entry = entry.ok_or_else(|| Error::application_not_found(app_id))?;
        let summary = record::read_summary(&self.sealer, &entry.value)?;
        Ok((entry, summary, counts))
    }
}

/// Reads the stored counts of this version; zero if they are of another one.
pub(super) fn read_counts(entry: Option<&Entry>, version: u32) -> Result<Counts, Error> {
    let counts: Option<Counts> = entry.map(|entry| serde_json::from_slice(&entry.value)).transpose()?;
    Ok(counts.filter(|counts| counts.version == version).unwrap_or_else(|| Counts::new(version)))
}

pub(super) fn conflict(app_id: &AppId) -> Error {
    Error::Conflict(format!("application {app_id}"))
}
