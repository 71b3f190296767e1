//! `/users/login` and `/users/logout`: sessions.

use api::rest::account::User;
use axum::{Json, extract::State, http::StatusCode};
use axum_extra::extract::cookie::CookieJar;
use serde::Deserialize;
use types::Secret;

use crate::{
    Account, Error, Session,
    http::{body::AnyBody, cookie, peer::Peer, reply::Reply},
};

#[derive(Deserialize)]
pub(super) struct Login {
    username: String,
    password: Secret,
}

pub(super) async fn log_in(
    State(account): State<Account>,
    Peer(from): Peer,
    old: Option<Session>,
    AnyBody(login): AnyBody<Login>,
) -> Result<(CookieJar, Json<User>), Reply> {
    let (value, user) = account.log_in(&login.username, login.password, from).await?.ok_or(Error::InvalidLogin)?;
    if let Some(old) = old {
        // A login always starts a new session, because the old cookie may have been planted (session fixation).
        account.log_out(&old).await?;
    }
    Ok((cookie::set(&account, &value), Json(user)))
}

pub(super) async fn log_out(
    State(account): State<Account>,
    session: Option<Session>,
) -> Result<(CookieJar, StatusCode), Reply> {
    if let Some(session) = session {
        account.log_out(&session).await?;
    }
    Ok((cookie::clear(&account), StatusCode::NO_CONTENT))
}
