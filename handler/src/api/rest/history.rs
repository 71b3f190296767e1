//! What was kept of messages, over HTTP, with paths of our own.

use std::sync::Arc;

use aide::axum::{ApiRouter, routing::get_with};
use api::rest::handler as body;
use axum::extract::{Path, Query, State, rejection::QueryRejection};
use schemars::JsonSchema;
use serde::Deserialize;
use server::{auth::Presented, json::Json, openapi::OperationExt};
use types::{AppId, Kind};

use super::{ApplicationPath, HttpResult, Shared};
use crate::{
    Error,
    api::{
        operations::Operations,
        wire::{
            app_id,
            history::{SentQuery, list_body, record_body, record_id},
        },
    },
};

/// A record, as its path names it.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct RecordPath {
    /// The application.
    #[schemars(with = "AppId")]
    app_id: String,
    /// The id of the record.
    id: String,
}

pub(super) fn routes() -> ApiRouter<Arc<Operations>> {
    let list = get_with(list, |op| {
        op.doc("ListRecords", "List the uplinks and events of an application that were kept, the newest first")
            .fails(&[Kind::NotFound])
    });
    let record =
        get_with(get, |op| op.doc("GetRecord", "Get an uplink or event that was kept").fails(&[Kind::NotFound]));
    ApiRouter::new()
        .api_route("/applications/{app_id}/history", list)
        .api_route("/applications/{app_id}/history/{id}", record)
}

async fn list(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    query: Result<Query<SentQuery>, QueryRejection>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::RecordList>> {
    let app_id = app_id(&path.app_id)?;
    let Query(query) = query.map_err(|error| Error::invalid("Query", error.body_text()))?;
    let page = operations.list_records(caller?, query.into_query(app_id)?).await?;
    Ok(Json(list_body(page)))
}

async fn get(
    State(operations): Shared,
    Path(path): Path<RecordPath>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::Record>> {
    let (app_id, id) = (app_id(&path.app_id)?, record_id(&path.id)?);
    Ok(Json(record_body(operations.get_record(caller?, &app_id, id).await?)))
}
