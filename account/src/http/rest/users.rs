//! `/users`: registration, profile and authorized clients.

use api::rest::account::{NewUser, ProfileChange, Registered, User};
use axum::{extract::State, response::NoContent};
use axum_extra::extract::cookie::CookieJar;
use server::{json::Json, status::ErrorChain};
use types::ClientId;

use crate::{
    Account, AuthenticatedUser, AuthorizedClient,
    http::{
        body::JsonBody,
        cookie,
        error::HttpError,
        openapi::responses::{Changed, Created, WithCookies},
        path::IdPath,
        peer::Peer,
    },
};

pub(super) async fn register(
    State(account): State<Account>,
    Peer(from): Peer,
    JsonBody(new): JsonBody<NewUser>,
) -> Result<WithCookies<Created<Registered>>, HttpError> {
    let user = account.register(new, from).await?;
    // v2 logs users in when they register. If that fails, they are registered nevertheless.
    let session = account.start_session(&user.id).await.unwrap_or_else(|error| {
        tracing::warn!(error = %ErrorChain(&error), "cannot start a session for a new user");
        None
    });
    let cookies = session.map_or_else(CookieJar::new, |value| cookie::set(&account, &value));
    Ok(WithCookies(cookies, Created(Registered { email: user.email.clone(), user })))
}

pub(super) async fn me(State(account): State<Account>, person: AuthenticatedUser) -> Result<Json<User>, HttpError> {
    Ok(Json(account.profile(person.user_id()).await?))
}

pub(super) async fn update(
    State(account): State<Account>,
    person: AuthenticatedUser,
    JsonBody(change): JsonBody<ProfileChange>,
) -> Result<WithCookies<Changed>, HttpError> {
    let value = account.change_profile(&person, change).await?;
    let cookies = value.map_or_else(CookieJar::new, |value| cookie::set(&account, &value));
    Ok(WithCookies(cookies, Changed))
}

/// Sends the mail again that asks to confirm the address.
pub(super) async fn resend_confirmation(
    State(account): State<Account>,
    person: AuthenticatedUser,
) -> Result<NoContent, HttpError> {
    account.resend_confirmation(person.user_id()).await?;
    Ok(NoContent)
}

pub(super) async fn clients(
    State(account): State<Account>,
    person: AuthenticatedUser,
) -> Result<Json<Vec<AuthorizedClient>>, HttpError> {
    Ok(Json(account.authorized_clients(person.user_id()).await?))
}

pub(super) async fn revoke_client(
    State(account): State<Account>,
    person: AuthenticatedUser,
    IdPath(client): IdPath<ClientId>,
) -> Result<NoContent, HttpError> {
    account.revoke_client(person.user_id(), &client).await?;
    Ok(NoContent)
}
