//! `/oauth/callback/<client>`: shows an authorization code that the user types into a program.

use askama::Template;
use axum::extract::{Query, State, rejection::QueryRejection};
use serde::Deserialize;
use types::{ClientId, Secret};

use crate::{
    Account, Error,
    http::{path::IdPath, reply::Reply},
    site::page::{Frame, Page, viewer::MaybeViewer},
};

#[derive(Template)]
#[template(path = "code.html")]
pub(in crate::site) struct Code {
    frame: Frame,
    /// The code to type; none if the user refused.
    code: Option<Secret>,
    /// The command to type it into.
    command: String,
    /// Where to start over.
    again: String,
}

/// What the authorization gave.
#[derive(Deserialize)]
pub(in crate::site) struct Given {
    code: Option<Secret>,
}

pub(in crate::site) async fn show(
    State(account): State<Account>,
    viewer: MaybeViewer,
    IdPath(id): IdPath<ClientId>,
    given: Result<Query<Given>, QueryRejection>,
) -> Result<Page<Code>, Reply> {
    // Only for clients that redirect to this page, so that it cannot be imitated for others.
    let redirect_uri = format!("/oauth/callback/{id}");
    let is_public = account.reads_code_at(&id, &redirect_uri).await?.ok_or(Error::PathNotFound)?;
    let Query(Given { code }) = given.map_err(|error| Error::Body(error.body_text()))?;
    // A public client has to start over itself, because of its PKCE challenge.
    let again = match is_public {
        true => String::new(),
        false => format!("/users/authorize?client_id={id}&redirect_uri={redirect_uri}&response_type=code"),
    };
    let command = format!("{id} user login");
    Ok(Page::new(Code { frame: viewer.frame(), code, command, again }))
}
