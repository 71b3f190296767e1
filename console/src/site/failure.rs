//! Errors of requests, and of parts of pages.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use server::{
    audit::visible,
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
    /// The failure, and the way out of it, in one or more sentences.
    pub(super) text: String,
    /// The words of whoever refused it, if the text has others; otherwise empty.
    pub(super) detail: String,
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
    pub(super) fn new(title: &'static str, text: String) -> Self {
        Self { title, text, detail: String::new() }
    }

    pub(super) fn of(error: &Error) -> Self {
        let (title, original) = (title(error.kind()), sentence(&error.to_string()));
        let Error::Service(error) = error else { return Self::new(title, original) };
        match (meaning(error), error.reason()) {
            (Some(text), _) => Self { title, text: text.to_owned(), detail: visible(&original).into_owned() },
            (None, Some(reason)) => Self::new(title, format!("{original} {}", sentence(&reason))),
            (None, None) => Self::new(title, original),
        }
    }

    /// The text with the details, for a place that has no room for two.
    pub(super) fn whole(&self) -> String {
        if self.detail.is_empty() { self.text.clone() } else { format!("{} {}", self.text, self.detail) }
    }
}

/// The meaning of a refusal for the viewer, and advice; none if its own text has both, as that of what was sent does.
fn meaning(error: &client::Error) -> Option<&'static str> {
    if matches!(error, client::Error::Foreign { .. }) {
        return Some(
            "What answered does not look like a service of this server, but like a proxy before it: try again, and if it \
             goes on, ask the operator to look at it.",
        );
    }
    if error.has_advice() {
        return None;
    }
    match error.kind() {
        Kind::Denied => Some(
            "You lack a right that this needs: ask somebody who manages the collaborators of the application, or the \
             operator.",
        ),
        Kind::Unauthenticated => Some("A service does not accept your login: log out, and log in again."),
        Kind::Exhausted => Some("More was asked for than is allowed at a time: try again in a moment."),
        Kind::Full => Some("There is no room for more: delete something, or ask the operator for more."),
        Kind::Unavailable | Kind::Timeout => Some("A service cannot do this now: try again in a moment."),
        Kind::Internal => Some("A service failed: the operator finds the reason in its log."),
        Kind::Invalid | Kind::TooLarge | Kind::NotFound | Kind::AlreadyExists | Kind::Conflict | Kind::Unsupported => {
            None
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(kind: Kind, message: &str) -> Problem {
        Problem::of(&Error::Service(client::Error::Refused { kind, message: message.to_owned(), retry_after: None }))
    }

    #[test]
    fn a_refusal_says_what_to_do_and_keeps_the_original() {
        let problem = refused(Kind::Denied, "no `devices` right");
        assert!(problem.text.contains("ask somebody"), "{}", problem.text);
        assert_eq!(problem.detail, "No `devices` right.");
        assert_eq!(refused(Kind::Internal, "\u{202e}x").detail, "\\u202ex.");
        let proxy = client::Error::Foreign { kind: Kind::Invalid, message: "<h1>400</h1>".into(), retry_after: None };
        let problem = Problem::of(&Error::Service(proxy));
        assert!(problem.text.contains("proxy") && problem.whole().ends_with(" <h1>400</h1>."), "{}", problem.whole());
    }

    #[test]
    fn a_refusal_of_what_was_sent_says_it_itself() {
        let problem = refused(Kind::Invalid, "port not valid: must be a number");
        assert_eq!((problem.text.as_str(), problem.detail.as_str()), ("Port not valid: must be a number.", ""));
    }
}
