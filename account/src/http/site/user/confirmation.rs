//! The target of the link in confirmation mails.

use askama::Template;
use axum::{
    Json,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use server::{site::sentence, status};
use types::Kinded;

use crate::{
    Account, Error,
    http::{
        error::HttpError,
        path::IdPath,
        site::page::{Frame, Page, error::accepts_html, viewer::MaybeViewer},
    },
};

#[derive(Template)]
#[template(path = "confirmed.html")]
struct Confirmed {
    frame: Frame,
    email: String,
    /// Reason why it could not be confirmed.
    problem: Option<String>,
}

/// Confirms an address, and answers browsers with a page and programs with JSON.
pub(crate) async fn confirm(
    State(account): State<Account>,
    viewer: MaybeViewer,
    IdPath(token): IdPath<String>,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    let confirmed = account.confirm_email(&token).await;
    if !accepts_html(&headers) {
        return Ok(Json(confirmed?).into_response());
    }
    let frame = viewer.frame();
    Ok(match confirmed {
        Ok(user) => Page::new(Confirmed { frame, email: user.email, problem: None }).into_response(),
        Err(error @ Error::Invalid { .. }) => {
            let problem = Some(sentence(&error.to_string()));
            let page = Page::new(Confirmed { frame, email: String::new(), problem });
            page.with_status(status::http(error.kind())).into_response()
        }
        Err(error) => return Err(error.into()),
    })
}
