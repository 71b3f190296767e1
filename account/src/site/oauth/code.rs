//! Where a program's user reads the code and types it into the program: `/oauth/callback/<client>`.

use askama::Template;
use axum::extract::{Query, State, rejection::QueryRejection};
use serde::Deserialize;
use types::{ClientId, Secret};

use crate::{
    Account, Error,
    http::{path::IdPath, reply::Reply},
    site::page::{Frame, Page, visitor::Guest},
};

#[derive(Template)]
#[template(path = "code.html")]
pub(in crate::site) struct Code {
    frame: Frame,
    /// What to type; without it the program may not act for the user.
    code: Option<Secret>,
    /// What takes it.
    command: String,
    /// Where to begin again.
    again: String,
}

/// What the authorization gave.
#[derive(Deserialize)]
pub(in crate::site) struct Given {
    code: Option<Secret>,
}

pub(in crate::site) async fn show(
    State(account): State<Account>,
    guest: Guest,
    IdPath(id): IdPath<ClientId>,
    given: Result<Query<Given>, QueryRejection>,
) -> Result<Page<Code>, Reply> {
    // Only for clients whose users are sent here: nobody's page is made to look like one of ours.
    let redirect_uri = format!("/oauth/callback/{id}");
    let is_public = account.reads_code_at(&id, &redirect_uri).await?.ok_or(Error::NoPath)?;
    let Query(Given { code }) = given.map_err(|error| Error::Body(error.body_text()))?;
    // A public client began with a challenge that only it can make anew.
    let again = match is_public {
        true => String::new(),
        false => format!("/users/authorize?client_id={id}&redirect_uri={redirect_uri}&response_type=code"),
    };
    let command = format!("{id} user login");
    Ok(Page::new(Code { frame: guest.frame(), code, command, again }))
}
