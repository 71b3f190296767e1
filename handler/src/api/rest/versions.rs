//! The versions of payload functions over HTTP, with paths of our own.

use std::sync::Arc;

use aide::axum::{
    ApiRouter,
    routing::{get_with, post_with},
};
use api::rest::handler as body;
use axum::extract::{Path, Query, State, rejection::QueryRejection};
use schemars::JsonSchema;
use serde::Deserialize;
use server::{
    auth::Presented,
    json::{Empty, Json, JsonObject},
    openapi::OperationExt,
};
use types::{AppId, Kind};

use super::{ApplicationPath, HttpResult, Shared};
use crate::{
    Error,
    api::{
        operations::Operations,
        wire::{app_id, version},
    },
};

/// A version, as its path names it.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct VersionPath {
    /// The application.
    #[schemars(with = "AppId")]
    app_id: String,
    /// The number of the version.
    #[schemars(with = "u32", range(min = 1))]
    number: String,
}

/// The version to compare with.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct DiffQuery {
    /// The number of the other version; the one that is live if it is omitted or 0.
    #[serde(default)]
    to: u32,
}

impl VersionPath {
    fn ids(&self) -> Result<(AppId, u32), Error> {
        let number = self.number.parse().ok().filter(|number| *number > 0);
        let number = number.ok_or_else(|| Error::invalid("Version", "it must be a number from 1 up"))?;
        Ok((app_id(&self.app_id)?, number))
    }
}

pub(super) fn routes() -> ApiRouter<Arc<Operations>> {
    let versions = get_with(list, |op| {
        op.doc("ListVersions", "List the versions of an application's functions that are kept, the newest first")
            .fails(&[Kind::NotFound])
    })
    .post_with(create, |op| {
        op.doc(
            "CreateVersion",
            "Set the functions of an application. Omitted functions are cleared. If the functions are live already, \
             there is no new version, and a note or link is set for the one that is live.",
        )
        .fails(&[Kind::NotFound, Kind::Conflict])
    });
    let version = get_with(get, |op| op.doc("GetVersion", "Get a version with its functions").fails(&[Kind::NotFound]))
        .put_with(label, |op| {
            op.doc("LabelVersion", "Replace the note and the link of a version")
                .fails(&[Kind::NotFound, Kind::Conflict])
        });
    let diff = get_with(diff, |op| {
        op.doc("CompareVersions", "Compare two versions: a unified diff of each function and of the payload format")
            .fails(&[Kind::NotFound])
    });
    let restore = post_with(restore, |op| {
        op.doc("RestoreVersion", "Make the functions of an older version live again, as a new version")
            .fails(&[Kind::NotFound, Kind::Conflict])
    });
    ApiRouter::new()
        .api_route("/applications/{app_id}/versions", versions)
        .api_route("/applications/{app_id}/versions/{number}", version)
        .api_route("/applications/{app_id}/versions/{number}/diff", diff)
        .api_route("/applications/{app_id}/versions/{number}/restore", restore)
}

async fn list(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::VersionList>> {
    let versions = operations.list_versions(caller?, &app_id(&path.app_id)?).await?;
    Ok(Json(version::list_body(versions)))
}

async fn create(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
    JsonObject(body): JsonObject<body::NewVersion>,
) -> HttpResult<Json<body::Version>> {
    let (application, label) = version::new_version(&path.app_id, body)?;
    Ok(Json(version::stored_body(operations.create_version(caller?, application, label).await?)))
}

async fn get(
    State(operations): Shared,
    Path(path): Path<VersionPath>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::Version>> {
    let (app_id, number) = path.ids()?;
    Ok(Json(version::stored_body(operations.get_version(caller?, &app_id, Some(number)).await?)))
}

async fn label(
    State(operations): Shared,
    Path(path): Path<VersionPath>,
    Presented(caller): Presented,
    JsonObject(body): JsonObject<body::VersionLabel>,
) -> HttpResult {
    let (app_id, number) = path.ids()?;
    operations.label_version(caller?, &app_id, number, version::label(body)?).await?;
    Ok(Json(Empty {}))
}

async fn diff(
    State(operations): Shared,
    Path(path): Path<VersionPath>,
    query: Result<Query<DiffQuery>, QueryRejection>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::VersionComparison>> {
    let (app_id, from) = path.ids()?;
    let Query(DiffQuery { to }) =
        query.map_err(|_| Error::invalid("Version to compare with", "it must be a number, or 0 for the live one"))?;
    let diff = operations.compare_versions(caller?, &app_id, (Some(from), version::number(to))).await?;
    Ok(Json(body::VersionComparison { diff }))
}

async fn restore(
    State(operations): Shared,
    Path(path): Path<VersionPath>,
    Presented(caller): Presented,
    JsonObject(body): JsonObject<body::VersionLabel>,
) -> HttpResult<Json<body::Version>> {
    let (app_id, number) = path.ids()?;
    let restored = operations.restore_version(caller?, &app_id, number, version::label(body)?).await?;
    Ok(Json(version::stored_body(restored)))
}
