//! `/users`: registering, and one's own profile.

use api::rest::account::{NewUser, Registered, User};
use axum::{Json, extract::State, http::StatusCode};
use types::Scope;

use super::{body::JsonBody, reply::Reply};
use crate::{Account, Error, access::Caller};

pub(super) async fn register(
    State(account): State<Account>,
    JsonBody(new): JsonBody<NewUser>,
) -> Result<(StatusCode, Json<Registered>), Reply> {
    let user = User::from(account.register(new).await?);
    Ok((StatusCode::CREATED, Json(Registered { email: user.email.clone(), user })))
}

pub(super) async fn me(State(account): State<Account>, caller: Caller) -> Result<Json<User>, Reply> {
    let user_id = caller.user_with(&Scope::Profile)?;
    let user = account.user(&user_id).await?;
    let user = user.ok_or_else(|| Error::NotFound { what: "user", id: user_id.to_string() })?;
    Ok(Json(user.into()))
}
