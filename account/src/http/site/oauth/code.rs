//! Shows an authorization code that the user types into a program: `/oauth/callback/<client>`.

use askama::Template;
use axum::extract::{Query, State, rejection::QueryRejection};
use serde::Deserialize;
use types::{ClientId, Secret};

use crate::{
    Account, Error,
    http::{
        error::HttpError,
        path::IdPath,
        site::page::{Frame, Page, viewer::MaybeViewer},
    },
};

#[derive(Template)]
#[template(path = "code.html")]
pub(in crate::http::site) struct Code {
    frame: Frame,
    /// `None` if the user denied access.
    code: Option<Secret>,
    /// The command that asks for the code.
    command: String,
    /// The path to request another code.
    again: String,
}

/// The query parameters of the redirect.
#[derive(Deserialize)]
pub(in crate::http::site) struct CallbackQuery {
    code: Option<Secret>,
}

pub(in crate::http::site) async fn show(
    State(account): State<Account>,
    viewer: MaybeViewer,
    IdPath(id): IdPath<ClientId>,
    query: Result<Query<CallbackQuery>, QueryRejection>,
) -> Result<Page<Code>, HttpError> {
    // Only for clients that are registered with this path, so that nobody can pretend to be one of ours.
    let redirect_uri = format!("/oauth/callback/{id}");
    let is_public = account.reads_code_at(&id, &redirect_uri).await?.ok_or(Error::PathNotFound)?;
    let Query(CallbackQuery { code }) = query.map_err(|error| Error::Body(error.body_text()))?;
    // A public client's request needs a code challenge that only the client can create.
    let again = match is_public {
        true => String::new(),
        false => format!("/users/authorize?client_id={id}&redirect_uri={redirect_uri}&response_type=code"),
    };
    let command = format!("{id} user login");
    Ok(Page::new(Code { frame: viewer.frame(), code, command, again }))
}
