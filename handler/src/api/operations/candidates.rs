//! Functions that a share of an application's devices tries. They belong to its settings.

use std::time::Duration;

use server::{
    auth::{Caller, Purpose},
    status::ErrorChain,
};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use types::{AppId, ApplicationRight, Claims, ErrorEvent};

use super::{
    Operations, actor,
    versions::{author, needs_functions},
};
use crate::{
    Error,
    output::Event,
    registry::application::{
        Abandoned, CandidateState, Counts, SentApplication, StoredVersion, Trial, VersionLabel, VersionOrigin,
    },
    status::metrics,
};

/// Time that counts wait to be stored, so that many uplinks are one commit.
const COUNTS_INTERVAL: Duration = Duration::from_secs(1);
/// Time that they wait after an attempt that failed.
const COUNTS_WAIT: Duration = Duration::from_secs(10);

impl Operations {
    /// Gives a share of the devices these functions, as a new version.
    pub(crate) async fn start_candidate(
        &self,
        caller: Caller,
        (application, label, trial): (SentApplication, VersionLabel, Trial),
    ) -> Result<CandidateState, Error> {
        let (usage, app_id) = (caller.usage.clone(), application.app_id.clone());
        let claims = self.allow_settings(caller, &app_id, Purpose::Change).await?;
        self.applications.check_registered(&app_id).await?;
        let application = application.into_application().for_share();
        needs_functions(&application)?;
        let checked = self.check_functions(&application, &usage).await?;
        let object = format!("{app_id} {:?}, {} of the devices", application.summary().functions_hash, trial.share);
        let change = self.audit.change("candidate set", &actor(&claims), &object)?;
        let time = Some(self.clock.now());
        let origin = VersionOrigin { time, changed_by: Some(author(&claims)), label, ..checked };
        change.run(self.applications.start_candidate(application, trial, origin)).await?;
        metrics::candidate("started");
        self.applications.candidate(&app_id).await
    }

    /// Gets the candidate, with what came of the uplinks of this process until now, and of others until a moment ago.
    pub(crate) async fn get_candidate(&self, caller: Caller, app_id: &AppId) -> Result<CandidateState, Error> {
        self.allow_settings(caller, app_id, Purpose::Read).await?;
        let mut state = self.applications.candidate(app_id).await?;
        self.uplinks.trials.add_to(app_id, &mut state.counts);
        Ok(state)
    }

    /// Changes the share of a candidate, and when it is abandoned.
    pub(crate) async fn set_trial(
        &self,
        caller: Caller,
        app_id: &AppId,
        trial: Trial,
    ) -> Result<CandidateState, Error> {
        let claims = self.allow_settings(caller, app_id, Purpose::Change).await?;
        let object = format!("{app_id}, {} of the devices", trial.share);
        let change = self.audit.change("candidate share set", &actor(&claims), &object)?;
        change.run(self.applications.set_trial(app_id, trial)).await?;
        self.applications.candidate(app_id).await
    }

    /// Makes the candidate live for all devices.
    pub(crate) async fn promote_candidate(&self, caller: Caller, app_id: &AppId) -> Result<StoredVersion, Error> {
        let usage = caller.usage.clone();
        let claims = self.allow_settings(caller, app_id, Purpose::Change).await?;
        let number = self.applications.candidate(app_id).await?.candidate.version;
        let StoredVersion { application, .. } = self.applications.version(app_id, Some(number)).await?;
        // Limits may have become lower since.
        self.payloads.check(&application.for_share(), &usage).await?;
        let object = format!("{app_id} version {number}");
        let change = self.audit.change("candidate promoted", &actor(&claims), &object)?;
        let version = change.run(self.applications.promote_candidate(app_id, number)).await?;
        metrics::candidate("promoted");
        self.applications.version(app_id, Some(version.number)).await
    }

    /// Ends the candidate: all devices have the live version again.
    pub(crate) async fn abandon_candidate(&self, caller: Caller, app_id: &AppId) -> Result<(), Error> {
        let claims = self.allow_settings(caller, app_id, Purpose::Change).await?;
        let change = self.audit.change("candidate abandoned", &actor(&claims), app_id)?;
        change.run(self.applications.abandon_candidate(app_id)).await?;
        metrics::candidate("abandoned");
        Ok(())
    }

    /// Stores what candidates make of uplinks, and abandons those that fail too much, until it is to stop; then a last
    /// time.
    pub async fn judge_candidates(&self, stop: &CancellationToken) {
        let mut wait = Duration::ZERO;
        while !stop.is_cancelled() {
            let waiting = async {
                sleep(wait).await;
                self.uplinks.trials.counted().await;
                sleep(COUNTS_INTERVAL).await;
            };
            _ = stop.run_until_cancelled(waiting).await;
            wait = match self.store_all_counts().await {
                Ok(()) => Duration::ZERO,
                Err(error) => {
                    tracing::warn!(error = %ErrorChain(&error), "cannot store what candidates make of uplinks");
                    COUNTS_WAIT
                }
            };
        }
    }

    /// Stores what was counted so far. The first error is returned after all were tried.
    async fn store_all_counts(&self) -> Result<(), Error> {
        let mut stored = Ok(());
        for (app_id, counts) in self.uplinks.trials.take_all() {
            stored = stored.and(self.store_counts(&app_id, counts).await);
        }
        stored
    }

    async fn store_counts(&self, app_id: &AppId, counts: Counts) -> Result<(), Error> {
        match self.applications.add_counts(app_id, &counts, self.clock.now()).await {
            Ok(abandoned) => {
                abandoned.into_iter().for_each(|abandoned| self.report_abandoned(app_id, abandoned));
                Ok(())
            }
            Err(error) => {
                self.uplinks.trials.put(app_id, &counts);
                Err(error)
            }
        }
    }

    /// Tells everybody that a candidate was abandoned. The application learns it from an event of the device on which
    /// it failed most.
    fn report_abandoned(&self, app_id: &AppId, Abandoned { state, dev_id }: Abandoned) {
        let CandidateState { candidate, live, counts } = state;
        let (version, live) = (candidate.version, live.unwrap_or_default());
        let failed = format!(
            "it failed on {} of {} uplinks, and version {live} on {} of {}",
            counts.candidate.failed, counts.candidate.uplinks, counts.live.failed, counts.live.uplinks
        );
        metrics::candidate("failed");
        tracing::warn!(%app_id, %dev_id, version, "abandoned the version of a share of the devices: {failed}");
        self.audit.note("candidate abandoned", &"handler", &format_args!("{app_id} version {version}: {failed}"));
        let error = format!(
            "Version {version} of the payload functions was abandoned, and all devices have version {live} again: \
             {failed}"
        );
        let (time, functions_version) = (Some(self.clock.now()), Some(version));
        let event = ErrorEvent { error, time, functions_version, ..ErrorEvent::default() };
        self.publish(app_id.clone(), dev_id, Event::UpError(event));
    }

    async fn allow_settings(&self, caller: Caller, app_id: &AppId, purpose: Purpose) -> Result<Claims, Error> {
        self.access.allow(caller, app_id, &[ApplicationRight::Settings], purpose).await
    }
}
