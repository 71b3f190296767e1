//! A version that a share of the devices has: its results, its share, its end.

mod abandoned;

use api::version::{Candidate, Results, Trial};
use axum::response::{IntoResponse, Response};
use client::handler::HandlerClient;
use types::{Kind, Kinded};

pub(super) use self::abandoned::{Abandoned, End};
use super::{
    State, done,
    form::{FunctionsForm, percent},
    with_candidate,
};
use crate::{
    Error, Result,
    site::{
        failure::{Failure, Problem, log},
        page::grouped,
        viewer::{InApplication, Sent},
    },
};

/// The part of the functions' page about such a version.
#[derive(Default)]
pub(super) struct CandidatePart {
    pub(super) view: Option<CandidateView>,
    /// The newest version, if it was tried and is not live.
    pub(super) abandoned: Option<Abandoned>,
    /// The error of looking for one.
    pub(super) problem: Option<Problem>,
}

/// A version that a share of the devices has, beside the one that the others have.
pub(super) struct CandidateView {
    pub(super) version: u32,
    pub(super) live_version: u32,
    pub(super) form: ShareForm,
    pub(super) rows: [ResultsRow; 2],
}

/// Terms of the trial of a version, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShareForm {
    /// In percent.
    pub(super) share: String,
    /// In percentage points.
    pub(super) margin: String,
    pub(super) uplinks_min: String,
}

/// Results of a version for uplinks, as a row of a table.
pub(super) struct ResultsRow {
    pub(super) version: u32,
    /// The share of the devices that have it, in percent.
    pub(super) devices: f64,
    pub(super) uplinks: u64,
    pub(super) failed: u64,
    /// The part of the uplinks on which it failed, in percent.
    pub(super) failed_percent: f64,
    pub(super) mean_fuel: String,
}

impl CandidatePart {
    /// Asks the handler for the version. An error becomes the problem that the page shows.
    pub(super) async fn of(request: &InApplication) -> Self {
        Self::find(request).await.unwrap_or_else(|error| {
            log(&error);
            Self { problem: Some(Problem::of(&error)), ..Self::default() }
        })
    }

    async fn find(request: &InApplication) -> Result<Self> {
        let handler = request.handler().await?;
        let found = match handler.get_candidate(request.app_id()).await {
            Ok(candidate) => Self { view: Some(CandidateView::new(candidate)), ..Self::default() },
            Err(error) if error.kind() == Kind::NotFound => {
                Self { abandoned: Abandoned::newest(request, &handler).await?, ..Self::default() }
            }
            Err(error) => return Err(error.into()),
        };
        Ok(found)
    }
}

impl CandidateView {
    fn new(candidate: Candidate) -> Self {
        let Candidate { version, trial, results, live_version, live_results } = candidate;
        let trial = trial.unwrap_or_default();
        let share = trial.share_percent;
        let live = ResultsRow::new(live_version, 100.0 - share, live_results.unwrap_or_default());
        let rows = [ResultsRow::new(version, share, results.unwrap_or_default()), live];
        Self { version, live_version, form: ShareForm::new(&trial), rows }
    }

    /// The smaller part of the uplinks on which one of both failed, in percent.
    pub(super) fn failed_least(&self) -> f64 {
        let [tried, live] = &self.rows;
        tried.failed_percent.min(live.failed_percent)
    }
}

impl ShareForm {
    fn new(trial: &Trial) -> Self {
        Self {
            share: rounded(trial.share_percent).to_string(),
            margin: trial.margin_percent.map(|margin| rounded(margin).to_string()).unwrap_or_default(),
            uplinks_min: trial.uplinks_min.map(|uplinks| uplinks.to_string()).unwrap_or_default(),
        }
    }

    fn of(sent: &Sent) -> Self {
        let text = |name: &str| sent.value(name).trim().to_owned();
        Self { share: text("share"), margin: text("margin"), uplinks_min: text("uplinks_min") }
    }

    /// The handler's defaults stand for what is empty.
    fn trial(&self, app_id: String) -> Result<Trial> {
        let given = |text: &str| !text.is_empty();
        let uplinks_min = given(&self.uplinks_min).then(|| self.uplinks_min.parse()).transpose();
        let must = || "must be a whole number, at least 1".to_owned();
        Ok(Trial {
            app_id,
            share_percent: percent("share", &self.share)?,
            margin_percent: given(&self.margin).then(|| percent("margin", &self.margin)).transpose()?,
            uplinks_min: uplinks_min.map_err(|_| Error::Invalid { what: "number of uplinks", must: must() })?,
        })
    }
}

impl ResultsRow {
    fn new(version: u32, devices: f64, Results { uplinks, failed, mean_fuel }: Results) -> Self {
        let failed_percent = rounded(100.0 * failed as f64 / uplinks.max(1) as f64);
        let mean_fuel = grouped(mean_fuel);
        Self { version, devices: rounded(devices), uplinks, failed, failed_percent, mean_fuel }
    }
}

/// Changes the share of the version, makes it live, or ends it.
pub(in crate::site) async fn submit(request: InApplication, sent: Sent) -> Result<Response, Failure> {
    let form = ShareForm::of(&sent);
    match change(&request, &sent, &form).await {
        Ok(notice) => Ok(done(&request, notice, "")),
        Err(Error::LoggedOut) => Err(Error::LoggedOut.into()),
        Err(error) => refused(&request, form, error).await,
    }
}

/// Returns the name of the notice.
async fn change(request: &InApplication, sent: &Sent, form: &ShareForm) -> Result<&'static str> {
    let (handler, app_id) = (request.handler().await?, request.app_id());
    is_still_there(request, &handler, sent).await?;
    let done = match sent.value("do") {
        "promote" => handler.promote_candidate(app_id).await.map(|_| "promoted"),
        "abandon" => handler.abandon_candidate(app_id).await.map(|()| "abandoned"),
        _ => handler.set_candidate(form.trial(app_id.to_string())?).await.map(|_| "share"),
    };
    Ok(done?)
}

/// Checks that the version that was looked at still has a share. It is checked just before something is changed: a
/// change in between is not noticed. Fails with [`Error::NoShare`] if it has none.
async fn is_still_there(request: &InApplication, handler: &HandlerClient, sent: &Sent) -> Result<()> {
    let seen = seen(sent);
    match handler.get_candidate(request.app_id()).await {
        Ok(candidate) if candidate.version == seen => Ok(()),
        Err(error) if error.kind() != Kind::NotFound => Err(error.into()),
        _ => Err(Error::NoShare(seen)),
    }
}

/// The version that was looked at.
fn seen(sent: &Sent) -> u32 {
    sent.value("version").parse().unwrap_or_default()
}

/// The page of the functions, with what was typed about the share when the login had expired, or a service was away.
pub(in crate::site) async fn draft(request: &InApplication, sent: &Sent) -> Result<Response, Failure> {
    let form = FunctionsForm::live(request).await?;
    let mut part = CandidatePart::of(request).await;
    let state = match &mut part.view {
        Some(view) if view.version == seen(sent) => {
            view.form = ShareForm::of(sent);
            State { is_draft: true, ..State::default() }
        }
        // The page says that it is not known.
        _ if part.problem.is_some() => State::default(),
        _ => State::refused(&Error::NoShare(seen(sent))),
    };
    Ok(with_candidate(request, form, state, part).into_response())
}

/// The page of the functions, with what was typed about the share.
async fn refused(request: &InApplication, typed: ShareForm, error: Error) -> Result<Response, Failure> {
    if matches!(error.kind(), Kind::Unavailable | Kind::Timeout) {
        return Err(error.into());
    }
    let form = FunctionsForm::live(request).await?;
    let mut part = CandidatePart::of(request).await;
    if let Some(view) = &mut part.view {
        view.form = typed;
    }
    let page = with_candidate(request, form, State::refused(&error), part);
    Ok(page.with_status(server::status::http(error.kind())).into_response())
}

/// To two decimals.
pub(in crate::site) fn rounded(percent: f64) -> f64 {
    (percent * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_a_share_can_be_sent_again() {
        let trial = Trial { share_percent: 33.33, margin_percent: Some(0.0), uplinks_min: Some(7), ..Trial::default() };
        assert_eq!(ShareForm::new(&trial).trial(String::new()).unwrap(), trial);
        let defaults = Trial { share_percent: 5.0, ..Trial::default() };
        assert_eq!(ShareForm::new(&defaults).trial(String::new()).unwrap(), defaults);
    }
}
