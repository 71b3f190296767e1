//! `/users`: registration, profile and authorized clients.

use api::rest::account::{NewUser, ProfileChange, Registered, User};
use axum::{Json, extract::State, http::StatusCode};
use axum_extra::extract::cookie::CookieJar;
use types::ClientId;

use crate::{
    Account, AuthenticatedUser, AuthorizedClient,
    http::{body::JsonBody, cookie, path::IdPath, peer::Peer, reply::Reply},
};

pub(super) async fn register(
    State(account): State<Account>,
    Peer(from): Peer,
    JsonBody(new): JsonBody<NewUser>,
) -> Result<(StatusCode, CookieJar, Json<Registered>), Reply> {
    let user = account.register(new, from).await?;
    // v2 logs users in when they register. If that fails, they are registered nevertheless.
    let session = account.start_session(&user.id).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot start a session for a new user");
        None
    });
    let cookies = session.map_or_else(CookieJar::new, |value| cookie::set(&account, &value));
    Ok((StatusCode::CREATED, cookies, Json(Registered { email: user.email.clone(), user })))
}

pub(super) async fn me(State(account): State<Account>, person: AuthenticatedUser) -> Result<Json<User>, Reply> {
    Ok(Json(account.profile(person.user_id()).await?))
}

pub(super) async fn update(
    State(account): State<Account>,
    person: AuthenticatedUser,
    JsonBody(change): JsonBody<ProfileChange>,
) -> Result<(StatusCode, CookieJar), Reply> {
    let value = account.change_profile(&person, change).await?;
    let cookies = value.map_or_else(CookieJar::new, |value| cookie::set(&account, &value));
    Ok((StatusCode::NO_CONTENT, cookies))
}

/// Sends the confirmation mail again.
pub(super) async fn resend_confirmation(
    State(account): State<Account>,
    person: AuthenticatedUser,
) -> Result<StatusCode, Reply> {
    account.resend_confirmation(person.user_id()).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn clients(
    State(account): State<Account>,
    person: AuthenticatedUser,
) -> Result<Json<Vec<AuthorizedClient>>, Reply> {
    Ok(Json(account.authorized_clients(person.user_id()).await?))
}

pub(super) async fn revoke_client(
    State(account): State<Account>,
    person: AuthenticatedUser,
    IdPath(client): IdPath<ClientId>,
) -> Result<StatusCode, Reply> {
    account.revoke_client(person.user_id(), &client).await?;
    Ok(StatusCode::NO_CONTENT)
}
