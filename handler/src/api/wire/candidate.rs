//! Functions that a share of the devices tries, on the wire.

use api::{rest::handler as body, version as message};

use super::version;
use crate::{
    Error,
    registry::application::{CandidateState, SentApplication, Trial, VersionLabel},
};

/// The functions of a new candidate, its label, and how it is to be tried.
pub(crate) type SentCandidate = (SentApplication, VersionLabel, Trial);

pub(crate) fn new_candidate(app_id: &str, new: body::NewCandidate) -> Result<SentCandidate, Error> {
    let body::NewCandidate { payload_format, functions, note, link, share_percent, margin_percent, uplinks_min } = new;
    let new = body::NewVersion { payload_format, functions, note, link };
    let (application, label) = version::new_version(app_id, new)?;
    Ok((application, label, trial(body::Trial { share_percent, margin_percent, uplinks_min })?))
}

/// The same from its message.
pub(crate) fn new_candidate_of(new: message::NewCandidate) -> Result<SentCandidate, Error> {
    let message::NewCandidate { functions, note, link, trial } = new;
    let (application, label) = version::new_version_of(message::NewVersion { functions, note, link })?;
    Ok((application, label, trial_of(&trial.unwrap_or_default())?))
}

pub(crate) fn trial(trial: body::Trial) -> Result<Trial, Error> {
    Trial::new(trial.share_percent, trial.margin_percent, trial.uplinks_min)
}

/// The same from its message, without the id of the application.
pub(crate) fn trial_of(trial: &message::Trial) -> Result<Trial, Error> {
    Trial::new(trial.share_percent, trial.margin_percent, trial.uplinks_min)
}

pub(crate) fn state_body(state: &CandidateState) -> body::Candidate {
    let CandidateState { candidate, live, counts } = state;
    body::Candidate {
        version: candidate.version,
        share_percent: candidate.trial.share.percent(),
        margin_percent: candidate.trial.margin.percent(),
        uplinks_min: candidate.trial.uplinks_min,
        results: version::results_body(counts.candidate),
        live_version: live.unwrap_or_default(),
        live_results: version::results_body(counts.live),
    }
}

/// The same as a message.
pub(crate) fn state_message(app_id: String, state: &CandidateState) -> message::Candidate {
    let body::Candidate { share_percent, margin_percent, uplinks_min, results, live_version, live_results, .. } =
        state_body(state);
    let (margin_percent, uplinks_min) = (Some(margin_percent), Some(uplinks_min));
    message::Candidate {
        version: state.candidate.version,
        trial: Some(message::Trial { app_id, share_percent, margin_percent, uplinks_min }),
        results: Some(version::results_message(results)),
        live_version,
        live_results: Some(version::results_message(live_results)),
    }
}
