//! `…/collaborators` and `…/rights` of applications, gateways and components.

use api::rest::account::{Collaborator, RightsBody};
use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::json;
use server::json::Json;
use types::Username;

use crate::{
    Account,
    entity::{Rights, access::Caller},
    http::{
        body::JsonBody,
        credentials::WantsJson,
        error::HttpError,
        openapi::responses::Changed,
        path::{EntityInPath, EntityPath, EntityPathAnd},
    },
};

pub(super) async fn list<E: EntityInPath>(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(id): EntityPath<E>,
) -> Result<Json<Vec<Collaborator<E::Right>>>, HttpError> {
    let access = account.access_with::<E>(&caller, &id, E::COLLABORATORS).await?;
    Ok(Json(account.collaborators(&access.entity.value).await?))
}

pub(super) async fn get<E: EntityInPath>(
    State(account): State<Account>,
    caller: Caller,
    EntityPathAnd(id, username): EntityPathAnd<E, Username>,
) -> Result<Json<Collaborator<E::Right>>, HttpError> {
    let access = account.access_with::<E>(&caller, &id, E::COLLABORATORS).await?;
    Ok(Json(account.collaborator(&access.entity.value, &username).await?))
}

/// Sets rights. The specification has no response body; clients that accept JSON get an empty object.
pub(super) async fn set<E: EntityInPath>(
    State(account): State<Account>,
    caller: Caller,
    EntityPathAnd(id, username): EntityPathAnd<E, Username>,
    WantsJson(wants_json): WantsJson,
    JsonBody(body): JsonBody<RightsBody<E::Right>>,
) -> Result<Response, HttpError> {
    let (RightsBody::Bare(rights) | RightsBody::Within { rights }) = body;
    account.set_collaborator::<E>(&caller, &id, &username, &rights).await?;
    let body = if wants_json { Json(json!({})).into_response() } else { ().into_response() };
    Ok((StatusCode::CREATED, body).into_response())
}

pub(super) async fn delete<E: EntityInPath>(
    State(account): State<Account>,
    caller: Caller,
    EntityPathAnd(id, username): EntityPathAnd<E, Username>,
) -> Result<Changed, HttpError> {
    account.remove_collaborator::<E>(&caller, &id, &username).await?;
    Ok(Changed)
}

/// The caller's rights.
pub(super) async fn rights<E: EntityInPath>(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(id): EntityPath<E>,
) -> Result<Json<Rights<E::Right>>, HttpError> {
    Ok(Json(account.access_with_key::<E>(&caller, &id).await?.rights))
}
