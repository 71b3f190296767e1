//! The list of applications.

use api::rest::account::Application;
use askama::Template;
use axum::{extract::State, response::Redirect};

use super::{
    failure::Failure,
    page::{Frame, Page, shown},
    viewer::{InApplication, Viewer},
};
use crate::Console;

#[derive(Template)]
#[template(path = "applications.html")]
pub(super) struct List {
    frame: Frame,
    applications: Vec<Application>,
}

pub(super) async fn list(State(console): State<Console>, viewer: Viewer) -> Result<Page<List>, Failure> {
    let mut applications = console.applications(&viewer.session).await?;
    applications.iter_mut().for_each(|application| application.name = shown(&application.name));
    Ok(Page::new(List { frame: viewer.frame, applications }))
}

/// Lets the handler serve an application that it does not serve yet.
pub(super) async fn register(request: InApplication) -> Result<Redirect, Failure> {
    request.console.register(&request.access).await?;
    Ok(Redirect::to(&format!("{}?done=registered", request.path())))
}
