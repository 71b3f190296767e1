//! Errors as pages.

use std::sync::Arc;

use askama::Template;
use axum::{
    extract::{FromRequestParts, Request, State},
    http::{Method, StatusCode, Uri},
    middleware::Next,
    response::{IntoResponse, Redirect, Response},
};
use server::{
    site::sentence,
    status::{self, ErrorChain},
};
use types::{Kind, Kinded};

use super::{
    login,
    page::{Frame, Page},
    viewer::MaybeViewer,
};
use crate::{Console, Error, Result};

/// An error that ends a request. A layer makes it a page.
pub(super) struct Failure(Arc<Error>);

/// Why a part of a page is missing, while the rest of it is there.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) title: &'static str,
    /// One or more sentences.
    pub(super) text: String,
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    frame: Frame,
    title: &'static str,
    text: String,
    code: u16,
}

impl<T: Into<Error>> From<T> for Failure {
    fn from(error: T) -> Self {
        Self(Arc::new(error.into()))
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = status::http(self.0.kind()).into_response();
        response.extensions_mut().insert(self.0);
        response
    }
}

impl Problem {
    pub(super) fn of(error: &Error) -> Self {
        let text = match error {
            Error::Service(error) => match error.reason() {
                Some(reason) => format!("{} {}", sentence(&error.to_string()), sentence(&reason)),
                None => sentence(&error.to_string()),
            },
            error => sentence(&error.to_string()),
        };
        Self { title: title(error.kind()), text }
    }
}

/// Lets a page go on without one of its parts. What concerns the whole page remains an error.
pub(super) fn partly<T>(result: Result<T>) -> Result<(Option<T>, Option<Problem>)> {
    match result {
        Ok(value) => Ok((Some(value), None)),
        Err(Error::LoggedOut) => Err(Error::LoggedOut),
        Err(error) if error.kind() == Kind::NotFound => Err(error),
        Err(error) => {
            log(&error);
            Ok((None, Some(Problem::of(&error))))
        }
    }
}

/// Turns errors into pages; who is not logged in is sent to the login.
pub(super) async fn show_failures(State(console): State<Console>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let mut asked = parts.clone();
    let mut response = next.run(Request::from_parts(parts, body)).await;
    let Some(error) = response.extensions_mut().remove::<Arc<Error>>() else { return response };
    if matches!(*error, Error::LoggedOut) {
        return log_in_first(&asked.method, &asked.uri);
    }
    log(&error);
    let viewer = MaybeViewer::from_request_parts(&mut asked, &console).await;
    let frame = viewer.map(|viewer| viewer.frame(&console)).unwrap_or_default();
    page(frame, &error)
}

fn page(frame: Frame, error: &Error) -> Response {
    let code = status::http(error.kind());
    let text = match error.kind() {
        Kind::Internal => "The log of the server says more.".to_owned(),
        _ => Problem::of(error).text,
    };
    Page::new(ErrorPage { frame, title: title(error.kind()), text, code: code.as_u16() })
        .with_status(code)
        .into_response()
}

/// Streams of events are not redirected: browsers would follow to a page.
fn log_in_first(method: &Method, uri: &Uri) -> Response {
    if uri.path().ends_with("/live/events") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let here = uri.path_and_query().map(ToString::to_string).filter(|_| *method == Method::GET);
    Redirect::to(&login::path(here.as_deref().unwrap_or("/console"))).into_response()
}

fn log(error: &Error) {
    match error.kind() {
        Kind::Internal => tracing::error!(error = %ErrorChain(error), "cannot show a page"),
        Kind::Unavailable | Kind::Timeout => tracing::warn!(error = %ErrorChain(error), "a page is not complete"),
        _ => {}
    }
}

fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::NotFound => "Not found",
        Kind::Denied => "Access denied",
        Kind::Unauthenticated => "Please log in",
        Kind::Conflict | Kind::AlreadyExists => "Conflicting change",
        Kind::Exhausted | Kind::Full => "Too much at once",
        Kind::Unavailable | Kind::Timeout => "A service is away",
        Kind::Internal | Kind::Unsupported => "Something went wrong",
        Kind::Invalid | Kind::TooLarge => "This cannot be done",
    }
}
