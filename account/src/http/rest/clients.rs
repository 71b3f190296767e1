//! `/clients`: OAuth clients that a user registered.

use api::rest::account::{Client as Body, ClientUpdate, NewClient};
use axum::extract::State;
use server::json::Json;
use types::{ClientId, Scope};

use crate::{
    Account,
    entity::access::Caller,
    http::{
        body::JsonBody,
        error::HttpError,
        openapi::responses::{Changed, Created},
        path::IdPath,
    },
};

pub(super) async fn list(State(account): State<Account>, caller: Caller) -> Result<Json<Vec<Body>>, HttpError> {
    let user_id = caller.user_with(&Scope::Clients)?;
    Ok(Json(account.clients_of(&user_id).await?))
}

pub(super) async fn create(
    State(account): State<Account>,
    caller: Caller,
    JsonBody(new): JsonBody<NewClient>,
) -> Result<Created<Body>, HttpError> {
    let user_id = caller.user_with(&Scope::Clients)?;
    Ok(Created(account.create_client(&user_id, new).await?))
}

pub(super) async fn get(
    State(account): State<Account>,
    caller: Caller,
    IdPath(id): IdPath<ClientId>,
) -> Result<Json<Body>, HttpError> {
    let user_id = caller.user_with(&Scope::Clients)?;
    Ok(Json(account.client_of(&user_id, &id).await?))
}

pub(super) async fn update(
    State(account): State<Account>,
    caller: Caller,
    IdPath(id): IdPath<ClientId>,
    JsonBody(update): JsonBody<ClientUpdate>,
) -> Result<Changed, HttpError> {
    let user_id = caller.user_with(&Scope::Clients)?;
    account.update_client(&user_id, &id, update).await?;
    Ok(Changed)
}

pub(super) async fn delete(
    State(account): State<Account>,
    caller: Caller,
    IdPath(id): IdPath<ClientId>,
) -> Result<Changed, HttpError> {
    let user_id = caller.user_with(&Scope::Clients)?;
    account.delete_client(&user_id, &id).await?;
    Ok(Changed)
}
