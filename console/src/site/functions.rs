//! The payload functions of an application: shown, tried on messages of the past, and saved.

pub(super) mod candidate;
mod comparison;
pub(super) mod correction;
mod examined;
mod form;
mod save;
mod tried;
pub(super) mod versions;

use api::{history::Record, version::Version};
use askama::Template;
use axum::{
    extract::Query,
    response::{IntoResponse, Redirect, Response},
};
use client::handler::HandlerClient;
use types::{Kind, Kinded};

use self::{
    candidate::CandidatePart, comparison::ComparisonView, correction::Differing, form::FunctionsForm, save::Conflict,
    tried::TriedView,
};
use super::{
    failure::{Failure, Problem},
    page::{Frame, Page},
    viewer::{InApplication, Sent},
};
use crate::{
    Error, Result,
    form::drafts::Fields,
    functions::failed_line::FailedLine,
    messages::{history::parameters, playground},
};

#[derive(Template)]
#[template(path = "functions.html")]
pub(super) struct Show {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    form: FunctionsForm,
    state: State,
    /// The link that opens the functions of the form in the playground; none without functions.
    playground: Option<String>,
    /// The version that a share of the devices has.
    candidate: CandidatePart,
}

/// Result of submitting the form.
#[derive(Default)]
struct State {
    problem: Option<Problem>,
    /// The line for which the functions were refused, or at which they failed on the message that they are mended for.
    failed: Option<FailedLine>,
    conflict: Option<Conflict>,
    /// True if the form is a draft that was sent when the login had expired or a service was away.
    is_draft: bool,
    /// Results of the functions for messages of the past, if they were tried.
    tried: Option<TriedView>,
    /// Changes that the functions would make, if they were compared with those that are live.
    comparison: Option<ComparisonView>,
    /// Set if what is stored differs from what functions give that have just gone live.
    differing: Option<Differing>,
    /// The last messages, for the playground.
    uplinks: Vec<Record>,
}

impl State {
    fn refused(error: &Error) -> Self {
        let mut problem = Problem::of(error);
        let failed = FailedLine::of(&problem.text);
        // Below its first line, a failure has what the form has, too: its line of the source.
        let first = problem.text.split_once('\n').map(|(first, _)| format!("{first}."));
        if let Some(first) = first.filter(|_| failed.is_some()) {
            problem.text = first;
        }
        Self { failed, problem: Some(problem), ..Self::default() }
    }

    /// The line that failed, if it is one of this function.
    fn failed_in(&self, function: &str) -> Option<&FailedLine> {
        self.failed.as_ref().filter(|failed| failed.function == function)
    }
}

pub(super) async fn show(request: InApplication, Query(fields): Query<Fields>) -> Result<Page<Show>, Failure> {
    let asked = Sent(fields);
    let form = FunctionsForm { device: asked.value("device").to_owned(), ..FunctionsForm::live(&request).await? };
    let (failed, differing) = tokio::join!(
        failed_line(&request, asked.value("message"), form.base),
        Differing::after(&request, asked.value("done"), form.base)
    );
    Ok(page(&request, form, State { failed, differing, ..State::default() }).await)
}

/// The line at which the live version failed on a message; none if another version ran on it, or nobody can say.
async fn failed_line(request: &InApplication, message: &str, live: u32) -> Option<FailedLine> {
    if message.is_empty() {
        return None;
    }
    let record = request.handler().await.ok()?.get_record(request.app_id(), message).await.ok()?;
    FailedLine::of(&record.failure).filter(|_| live > 0 && record.version == live)
}

/// Tries the functions, or saves them.
pub(super) async fn submit(request: InApplication, sent: Sent) -> Result<Response, Failure> {
    let form = FunctionsForm::of(&request, &sent);
    let done = match sent.value("do") {
        "save" => save::for_all(&request, &form).await,
        "share" => save::for_share(&request, &form).await,
        "compare" => compare(&request, &form).await,
        _ => try_out(&request, &form).await,
    };
    match done {
        Ok(response) => Ok(response),
        Err(Error::LoggedOut) => Err(Error::LoggedOut.into()),
        // Whatever it is, nothing that was typed is lost.
        Err(error) => Ok(refused(&request, form, &error).await),
    }
}

/// The page with a form that was sent when the login had expired, or a service was away.
pub(super) async fn draft(request: &InApplication, sent: &Sent) -> Result<Response, Failure> {
    let state = State { is_draft: true, ..State::default() };
    Ok(page(request, FunctionsForm::of(request, sent), state).await.into_response())
}

/// Shows what would change about the last uplinks of each device.
async fn compare(request: &InApplication, form: &FunctionsForm) -> Result<Response> {
    let comparison = request.console.compare(&request.access, &form.device, form.functions.clone()).await?;
    let state = State { comparison: Some(ComparisonView::new(comparison, &form.device)), ..State::default() };
    Ok(page(request, form.clone(), state).await.into_response())
}

async fn try_out(request: &InApplication, form: &FunctionsForm) -> Result<Response> {
    let tried = TriedView::of(request, form).await?;
    let failed = tried.rows.iter().find(|row| row.verdict.is_bad()).and_then(|row| FailedLine::of(&row.now));
    let state = State { failed, tried: Some(tried), ..State::default() };
    Ok(page(request, form.clone(), state).await.into_response())
}

/// The page with what was typed, and why nothing came of it.
async fn refused(request: &InApplication, form: FunctionsForm, error: &Error) -> Response {
    let (status, state) = (server::status::http(error.kind()), State::refused(error));
    let page = match error.kind() {
        // Whoever has waited for a service that is away does not wait for it again.
        Kind::Unavailable | Kind::Timeout => with_candidate(request, form, state, CandidatePart::default()),
        _ => page(request, form, state).await,
    };
    page.with_status(status).into_response()
}

/// The version that is live. Before the first one was saved, its number is zero.
pub(super) async fn live(request: &InApplication, handler: &HandlerClient) -> Result<Version> {
    match handler.get_version(request.app_id(), 0).await {
        Err(error) if error.kind() == Kind::NotFound => {
            let functions = handler.get_application(request.app_id()).await?;
            Ok(Version { functions: Some(functions), ..Version::default() })
        }
        found => found.map_err(Error::from),
    }
}

async fn page(request: &InApplication, form: FunctionsForm, state: State) -> Page<Show> {
    let (candidate, uplinks) = tokio::join!(CandidatePart::of(request), tried::latest_in_time(request, &form.device));
    with_candidate(request, form, State { uplinks, ..state }, candidate)
}

fn with_candidate(request: &InApplication, form: FunctionsForm, state: State, candidate: CandidatePart) -> Page<Show> {
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    let playground = playground::link(&form.functions, &state.uplinks);
    Page::new(Show { frame, app_id, tab: "functions", form, state, playground, candidate })
}

/// Redirects to the page, with a notice of what was done and the device on whose messages functions are tried.
fn done(request: &InApplication, notice: &str, device: &str) -> Response {
    let asked = [("done", notice), ("device", device)];
    let asked = parameters(asked.into_iter().filter(|(_, value)| !value.is_empty()));
    Redirect::to(&format!("{}/functions?{asked}", request.path())).into_response()
}
