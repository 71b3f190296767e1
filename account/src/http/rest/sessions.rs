//! `/users/login` and `/users/logout`: sessions.

use api::rest::account::User;
use axum::{extract::State, response::NoContent};
use schemars::JsonSchema;
use serde::Deserialize;
use server::json::Json;
use types::Secret;

use crate::{
    Account, Error, Session,
    http::{body::AnyBody, cookie, error::HttpError, openapi::responses::WithCookies, peer::Peer},
};

/// A user's name and password, as a form or as JSON.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Login {
    username: String,
    password: Secret,
}

pub(super) async fn log_in(
    State(account): State<Account>,
    Peer(from): Peer,
    old: Option<Session>,
    AnyBody(login): AnyBody<Login>,
) -> Result<WithCookies<Json<User>>, HttpError> {
    let (value, user) = account.log_in(&login.username, login.password, from).await?.ok_or(Error::InvalidLogin)?;
    if let Some(old) = old {
        // A login always starts a new session, because the old cookie may have been planted (session fixation).
        account.log_out(&old).await?;
    }
    Ok(WithCookies(cookie::set(&account, &value), Json(user)))
}

pub(super) async fn log_out(
    State(account): State<Account>,
    session: Option<Session>,
) -> Result<WithCookies<NoContent>, HttpError> {
    if let Some(session) = session {
        account.log_out(&session).await?;
    }
    Ok(WithCookies(cookie::clear(&account), NoContent))
}
