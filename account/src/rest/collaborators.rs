//! `/applications/{app_id}/collaborators`: who may do what.

use api::rest::account::Collaborator;
use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::json;
use types::{ApplicationRight, Username};

use super::{
    body::JsonBody,
    caller::{AppPath, AppPathAnd, WantsJson},
    reply::Reply,
};
use crate::{
    Account,
    access::{Caller, State as Which},
};

/// The rights to set: the specification has the bare list, SDKs of v2 send it in an object.
#[derive(Deserialize)]
#[serde(untagged, expecting = "must be a list of rights, or an object with such a list as `rights`")]
pub(super) enum RightsBody {
    Bare(Vec<ApplicationRight>),
    Within { rights: Vec<ApplicationRight> },
}

pub(super) async fn list(
    State(account): State<Account>,
    caller: Caller,
    AppPath(app_id): AppPath,
) -> Result<Json<Vec<Collaborator>>, Reply> {
    let access = account.access(&caller, &app_id, Which::Active).await?;
    access.require(ApplicationRight::Collaborators)?;
    Ok(Json(account.collaborators(&access.application.value).await?))
}

pub(super) async fn get(
    State(account): State<Account>,
    caller: Caller,
    AppPathAnd(app_id, username): AppPathAnd<Username>,
) -> Result<Json<Collaborator>, Reply> {
    let access = account.access(&caller, &app_id, Which::Active).await?;
    access.require(ApplicationRight::Collaborators)?;
    Ok(Json(account.collaborator(&access.application.value, &username).await?))
}

pub(super) async fn set(
    State(account): State<Account>,
    caller: Caller,
    AppPathAnd(app_id, username): AppPathAnd<Username>,
    WantsJson(wants_json): WantsJson,
    JsonBody(body): JsonBody<RightsBody>,
) -> Result<Response, Reply> {
    let (RightsBody::Bare(rights) | RightsBody::Within { rights }) = body;
    account.set_collaborator(&caller, &app_id, &username, &rights).await?;
    let body = if wants_json { Json(json!({})).into_response() } else { ().into_response() };
    Ok((StatusCode::CREATED, body).into_response())
}

pub(super) async fn delete(
    State(account): State<Account>,
    caller: Caller,
    AppPathAnd(app_id, username): AppPathAnd<Username>,
) -> Result<StatusCode, Reply> {
    account.remove_collaborator(&caller, &app_id, &username).await?;
    Ok(StatusCode::NO_CONTENT)
}
