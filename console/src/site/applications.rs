//! The list of applications. Who has none gets a form that creates the first one.

use api::rest::account::Application;
use askama::Template;
use axum::{
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Redirect, Response},
};
use axum_extra::extract::cookie::CookieJar;
use server::site::{Origin, origin};
use types::{Kind, Kinded};

use super::{
    failure::{Failure, Problem},
    page::{Frame, Page, shown},
    viewer::{InApplication, Sent, Viewer, login},
};
use crate::{
    Console, Result,
    form::first_application::{FirstApplicationForm, SAMPLES, Sample},
    messages::history::parameters,
};

/// The cookie with which the form of the first account asks for the first application.
const WANTED: &str = "first_application";

#[derive(Template)]
#[template(path = "applications.html")]
pub(super) struct List {
    frame: Frame,
    applications: Vec<Application>,
    /// The form of the first application, if there is none or it was refused.
    first: Option<FirstApplicationForm>,
    problem: Option<Problem>,
}

impl List {
    fn samples(&self) -> [Sample; SAMPLES.len()] {
        SAMPLES
    }
}

pub(super) async fn list(State(console): State<Console>, viewer: Viewer) -> Result<Page<List>, Failure> {
    let applications = applications(&console, &viewer).await?;
    let first = applications.is_empty().then(|| FirstApplicationForm::suggested(viewer.session.username.as_str()));
    Ok(Page::new(List { frame: viewer.frame, applications, first, problem: None }))
}

/// Creates the first application of whoever has just asked for it with the first account. Others get the form.
pub(super) async fn create_wanted(
    State(console): State<Console>,
    viewer: Viewer,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let is_wanted = CookieJar::from_headers(&headers).get(WANTED).is_some();
    // Programs at other ports of this host can set the cookie, too, but their pages do not count as this site's.
    if !is_wanted || origin(&headers, console.place.public_url()) == Origin::CrossSite {
        return Ok(Redirect::to("/console").into_response());
    }
    let form = FirstApplicationForm::suggested(viewer.session.username.as_str());
    let ended = CookieJar::new().add(login::cookie(&console, WANTED, String::new(), 0));
    Ok((ended, created_or_refused(&console, viewer, form).await?).into_response())
}

/// Creates the first application as the form asks for it.
pub(super) async fn create_first(
    State(console): State<Console>,
    viewer: Viewer,
    sent: Sent,
) -> Result<Response, Failure> {
    created_or_refused(&console, viewer, FirstApplicationForm::sent(|name| sent.value(name))).await
}

/// Creates the first application, and shows its first uplink in the live view; or else the form, with the reason.
async fn created_or_refused(
    console: &Console,
    viewer: Viewer,
    form: FirstApplicationForm,
) -> Result<Response, Failure> {
    let error = match create(console, &viewer, &form).await {
        Ok(response) => return Ok(response),
        Err(error) if matches!(error.kind(), Kind::Unauthenticated | Kind::Internal) => return Err(error.into()),
        Err(error) => error,
    };
    let applications = applications(console, &viewer).await?;
    let (status, problem) = (server::status::http(error.kind()), Some(Problem::of(&error)));
    let page = List { frame: viewer.frame, applications, first: Some(form), problem };
    Ok(Page::new(page).with_status(status).into_response())
}

async fn create(console: &Console, viewer: &Viewer, form: &FirstApplicationForm) -> Result<Response> {
    let first = form.parse()?;
    console.create_first_application(&viewer.session, &first).await?;
    let device = parameters([("first", first.dev_id.as_str())]);
    Ok(Redirect::to(&format!("/console/applications/{}/live?{device}", first.app_id)).into_response())
}

async fn applications(console: &Console, viewer: &Viewer) -> Result<Vec<Application>> {
    let mut applications = console.applications(&viewer.session).await?;
    applications.iter_mut().for_each(|application| application.name = shown(&application.name));
    Ok(applications)
}

/// Lets the handler serve an application that it does not serve yet.
pub(super) async fn register(request: InApplication) -> Result<Redirect, Failure> {
    request.console.register(&request.access).await.map(drop)?;
    Ok(Redirect::to(&format!("{}?done=registered", request.path())))
}
