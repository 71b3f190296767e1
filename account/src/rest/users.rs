//! `/users`: registration, the caller's profile, and the clients that may act for them.

use api::rest::account::{NewUser, ProfileChange, Registered, User};
use axum::{Json, extract::State, http::StatusCode};
use axum_extra::extract::cookie::CookieJar;
use types::ClientId;

use crate::{
    Account, AuthorizedClient, Person,
    http::{body::JsonBody, cookie, path::IdPath, peer::Peer, reply::Reply},
};

pub(super) async fn register(
    State(account): State<Account>,
    Peer(from): Peer,
    JsonBody(new): JsonBody<NewUser>,
) -> Result<(StatusCode, CookieJar, Json<Registered>), Reply> {
    let user = account.register(new, from).await?;
    // Registration also logs the user in, as in v2. If that fails, the user is registered all the same.
    let session = account.first_session(&user.id).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot start a session for a new user");
        None
    });
    let cookies = session.map_or_else(CookieJar::new, |value| cookie::begin(&account, &value));
    Ok((StatusCode::CREATED, cookies, Json(Registered { email: user.email.clone(), user })))
}

pub(super) async fn me(State(account): State<Account>, person: Person) -> Result<Json<User>, Reply> {
    Ok(Json(account.profile(person.user_id()).await?))
}

pub(super) async fn update(
    State(account): State<Account>,
    person: Person,
    JsonBody(change): JsonBody<ProfileChange>,
) -> Result<(StatusCode, CookieJar), Reply> {
    let value = account.change_profile(&person, change).await?;
    let cookies = value.map_or_else(CookieJar::new, |value| cookie::begin(&account, &value));
    Ok((StatusCode::NO_CONTENT, cookies))
}

/// Mails the confirmation link again.
pub(super) async fn ask_confirmation(State(account): State<Account>, person: Person) -> Result<StatusCode, Reply> {
    account.ask_confirmation(person.user_id()).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn clients(
    State(account): State<Account>,
    person: Person,
) -> Result<Json<Vec<AuthorizedClient>>, Reply> {
    Ok(Json(account.authorized_clients(person.user_id()).await?))
}

pub(super) async fn revoke_client(
    State(account): State<Account>,
    person: Person,
    IdPath(client): IdPath<ClientId>,
) -> Result<StatusCode, Reply> {
    account.revoke_client(person.user_id(), &client).await?;
    Ok(StatusCode::NO_CONTENT)
}
