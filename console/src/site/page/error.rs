//! Errors as pages.

use std::sync::Arc;

use askama::Template;
use axum::{
    extract::{FromRequestParts, Request, State},
    http::{Method, StatusCode, Uri, header},
    middleware::Next,
    response::{IntoResponse, Redirect, Response},
};
use server::status;
use types::{Kind, Kinded};

use super::{Frame, Page};
use crate::{
    Console, Error,
    site::{
        failure::{Problem, log, title},
        viewer::{MaybeViewer, draft, login},
    },
};

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    frame: Frame,
    title: &'static str,
    text: String,
    detail: String,
    code: u16,
    /// Link to the draft of what was sent, if it is kept.
    draft: Option<String>,
}

/// Turns errors into pages; who is not logged in is sent to the login.
pub(in crate::site) async fn show_failures(State(console): State<Console>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let mut asked = parts.clone();
    let mut response = next.run(Request::from_parts(parts, body)).await;
    let Some(error) = response.extensions_mut().remove::<Arc<Error>>() else { return response };
    if matches!(*error, Error::LoggedOut) {
        return log_in_first(&asked.method, &asked.uri);
    }
    log(&error);
    if is_stream(&asked.uri) {
        let headers = [(header::CACHE_CONTROL, "no-store"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
        return (status::http(error.kind()), headers, problem(&error).whole()).into_response();
    }
    let draft = response.extensions_mut().remove::<draft::DraftId>().map(|draft::DraftId(id)| draft::path(&id));
    let viewer = MaybeViewer::from_request_parts(&mut asked, &console).await;
    let frame = viewer.map(|viewer| viewer.frame(&console)).unwrap_or_default();
    page(frame, &error, draft)
}

fn page(frame: Frame, error: &Error, draft: Option<String>) -> Response {
    let code = status::http(error.kind());
    let Problem { title, text, detail } = problem(error);
    Page::new(ErrorPage { frame, title, text, detail, code: code.as_u16(), draft }).with_status(code).into_response()
}

fn problem(error: &Error) -> Problem {
    match error.kind() {
        Kind::Internal => Problem::new(title(error.kind()), "See the server log for details.".to_owned()),
        _ => Problem::of(error),
    }
}

/// Returns true for a stream of events. A script reads why there is none, and shows it in a page.
fn is_stream(uri: &Uri) -> bool {
    uri.path().ends_with("/live/events")
}

/// Streams of events are not redirected: browsers would follow to a page.
fn log_in_first(method: &Method, uri: &Uri) -> Response {
    if is_stream(uri) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let here = uri.path_and_query().map(ToString::to_string).filter(|_| *method == Method::GET);
    Redirect::to(&login::path(here.as_deref().unwrap_or("/console"))).into_response()
}
