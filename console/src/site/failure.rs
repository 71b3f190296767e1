//! Errors of requests, and of parts of pages.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use server::{
    site::sentence,
    status::{self, ErrorChain},
};
use types::{Kind, Kinded};

use crate::{Error, Result};

/// An error that ends a request. A layer makes it a page.
pub(super) struct Failure(Arc<Error>);

/// The reason why a part of a page is missing, while the rest of it is there.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) title: &'static str,
    /// One or more sentences.
    pub(super) text: String,
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

pub(super) fn log(error: &Error) {
    match error.kind() {
        Kind::Internal => tracing::error!(error = %ErrorChain(error), "cannot show a page"),
        Kind::Unavailable | Kind::Timeout => tracing::warn!(error = %ErrorChain(error), "a page is not complete"),
        _ => {}
    }
}

pub(super) fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::NotFound => "Not found",
        Kind::Denied => "Access denied",
        Kind::Unauthenticated => "Please log in",
        Kind::Conflict | Kind::AlreadyExists => "Conflicting change",
        Kind::Exhausted | Kind::Full => "Limit reached",
        Kind::Unavailable | Kind::Timeout => "Service unavailable",
        Kind::Internal | Kind::Unsupported => "Something went wrong",
        Kind::Invalid | Kind::TooLarge => "Invalid input",
    }
}
