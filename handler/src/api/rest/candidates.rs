//! Functions that a share of the devices tries, over HTTP, with paths of our own.

use std::sync::Arc;

use aide::axum::{
    ApiRouter,
    routing::{get_with, post_with},
};
use api::rest::handler as body;
use axum::extract::{Path, State};
use server::{
    auth::Presented,
    json::{Empty, Json, JsonObject},
    openapi::OperationExt,
};
use types::Kind;

use super::{ApplicationPath, HttpResult, Shared};
use crate::api::{
    operations::Operations,
    wire::{app_id, candidate, version},
};

pub(super) fn routes() -> ApiRouter<Arc<Operations>> {
    let candidate = get_with(get, |op| {
        op.doc(
            "GetCandidate",
            "Get the version that a share of the devices has, and what it and the live one made of uplinks since",
        )
        .fails(&[Kind::NotFound])
    })
    .post_with(create, |op| {
        op.doc(
            "CreateCandidate",
            "Give a share of the devices other functions, as a new version. There may be one at a time. It is abandoned \
             by itself when it fails more often than the live one, by the margin, on several devices.",
        )
        .fails(&[Kind::NotFound, Kind::Conflict])
    })
    .put_with(set, |op| {
        op.doc("SetCandidate", "Change the share of the devices, and when the version is abandoned")
            .fails(&[Kind::NotFound, Kind::Conflict])
    })
    .delete_with(abandon, |op| {
        op.doc("AbandonCandidate", "End it: all devices have the live version again")
            .fails(&[Kind::NotFound, Kind::Conflict])
    });
    let promote = post_with(promote, |op| {
        op.doc("PromoteCandidate", "Make the version live for all devices").fails(&[Kind::NotFound, Kind::Conflict])
    });
    ApiRouter::new()
        .api_route("/applications/{app_id}/candidate", candidate)
        .api_route("/applications/{app_id}/candidate/promote", promote)
}

async fn get(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::Candidate>> {
    let state = operations.get_candidate(caller?, &app_id(&path.app_id)?).await?;
    Ok(Json(candidate::state_body(&state)))
}

async fn create(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
    JsonObject(body): JsonObject<body::NewCandidate>,
) -> HttpResult<Json<body::Candidate>> {
    let new = candidate::new_candidate(&path.app_id, body)?;
    Ok(Json(candidate::state_body(&operations.start_candidate(caller?, new).await?)))
}

async fn set(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
    JsonObject(body): JsonObject<body::Trial>,
) -> HttpResult<Json<body::Candidate>> {
    let state = operations.set_trial(caller?, &app_id(&path.app_id)?, candidate::trial(body)?).await?;
    Ok(Json(candidate::state_body(&state)))
}

async fn promote(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::Version>> {
    let promoted = operations.promote_candidate(caller?, &app_id(&path.app_id)?).await?;
    Ok(Json(version::stored_body(promoted)))
}

async fn abandon(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
) -> HttpResult {
    operations.abandon_candidate(caller?, &app_id(&path.app_id)?).await?;
    Ok(Json(Empty {}))
}
