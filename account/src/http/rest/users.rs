//! `/users`: registration, profile and authorized clients; for operators, all users.

use api::rest::account::{ListedUser, NewUser, ProfileChange, Registered, User, UserDetails};
use axum::{
    extract::{Query, State, rejection::QueryRejection},
    response::NoContent,
};
use axum_extra::extract::cookie::CookieJar;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::JsonSchema;
use serde::Deserialize;
use server::{json::Json, status::ErrorChain};
use types::{ClientId, UserId, Username};

use crate::{
    Account, AuthenticatedUser, AuthorizedClient, Error,
    entity::access::Caller,
    http::{
        body::JsonBody,
        cookie,
        error::HttpError,
        openapi::responses::{Changed, Created, NoStore, Page, WithCookies},
        paging::next_link,
        path::IdPath,
        peer::Peer,
    },
};

/// The query of a list of users.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct UsersQuery {
    /// A part of a name, an id or an e-mail address, in letters of either case.
    #[serde(default)]
    search: String,
    /// The name after which the page starts.
    after: Option<Username>,
}

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

pub(super) async fn list(
    State(account): State<Account>,
    caller: Caller,
    query: Result<Query<UsersQuery>, QueryRejection>,
) -> Result<Page<ListedUser>, HttpError> {
    let Query(UsersQuery { search, after }) = query.map_err(|error| Error::Body(error.body_text()))?;
    let (items, next) = account.page_of_users(&caller, after.as_ref(), &search).await?;
    let query = match search.trim() {
        "" => String::new(),
        search => format!("search={}&", utf8_percent_encode(search, NON_ALPHANUMERIC)),
    };
    Ok(Page { next: next_link(next.map(String::from), &query), items })
}

pub(super) async fn get(
    State(account): State<Account>,
    caller: Caller,
    IdPath(user_id): IdPath<UserId>,
) -> Result<NoStore<UserDetails>, HttpError> {
    Ok(NoStore(account.user_details(&caller, &user_id).await?))
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
