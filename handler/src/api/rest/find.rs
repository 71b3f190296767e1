//! Finding devices, and what they sent last, and changing many, over HTTP. v2 only listed devices by id and changed one at
//! a time, so these paths are our own.

use std::{mem, sync::Arc};

use aide::axum::{
    ApiRouter,
    routing::{get_with, post_with},
};
use api::rest::handler as body;
use axum::extract::{Path, Query, State, rejection::QueryRejection};
use server::{
    auth::Presented,
    json::{Json, JsonObject},
    openapi::OperationExt,
};
use types::Kind;

use super::{ApplicationPath, HttpResult, Shared};
use crate::{
    Error,
    api::{
        operations::Operations,
        wire::{
            app_id,
            attributes::{attribute_change, changed_body},
            find::{SentNewest, SentSearch, device_body, found_body, newest_body, newest_of},
        },
    },
};

pub(super) fn routes() -> ApiRouter<Arc<Operations>> {
    let find = get_with(find_devices, |op| {
        op.doc(
            "FindDevices",
            "Find devices of an application by text and by when they were last seen: the last join, or frame of a \
             network broker, and where that matters for the search also the last uplink in history. A page begins after \
             a device, so that none is missed if others come, go or are heard meanwhile",
        )
        .fails(&[Kind::NotFound])
    });
    let newest = get_with(newest_uplinks, |op| {
        op.doc("ListNewestUplinks", "List the newest uplinks of some devices, one device after the other")
            .fails(&[Kind::NotFound])
    });
    let change = post_with(change_devices, |op| {
        op.doc(
            "ChangeDevices",
            "Set or remove an attribute of devices, each by itself, and change nothing else about them. The answer names \
             the devices that were not changed, with the reason",
        )
        .fails(&[Kind::NotFound])
    });
    ApiRouter::new()
        .api_route("/applications/{app_id}/change-devices", change)
        .api_route("/applications/{app_id}/find-devices", find)
        .api_route("/applications/{app_id}/newest-uplinks", newest)
}

async fn find_devices(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    query: Result<Query<SentSearch>, QueryRejection>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::FoundDevices>> {
    let app_id = app_id(&path.app_id)?;
    let Query(sent) = query.map_err(|error| Error::invalid("Query", error.body_text()))?;
    let caller = caller?;
    let usage = caller.usage.clone();
    let (mut found, _turn) = operations.find_devices(caller, &app_id, &sent.into_search()?).await?;
    let devices = usage.map_in_pieces(mem::take(&mut found.devices), device_body).await;
    Ok(Json(found_body(devices, &found)))
}

async fn newest_uplinks(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    query: Result<Query<SentNewest>, QueryRejection>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::NewestUplinks>> {
    let app_id = app_id(&path.app_id)?;
    let Query(sent) = query.map_err(|error| Error::invalid("Query", error.body_text()))?;
    let wanted = newest_of(sent.dev_ids.split(','), sent.limit)?;
    Ok(Json(newest_body(operations.newest_uplinks(caller?, &app_id, wanted).await?)))
}

async fn change_devices(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
    JsonObject(body): JsonObject<body::DevicesChange>,
) -> HttpResult<Json<body::ChangedDevices>> {
    let app_id = app_id(&path.app_id)?;
    let change = attribute_change(&body.dev_ids, body.key, body.value)?;
    Ok(Json(changed_body(operations.change_attribute(caller?, &app_id, change).await?)))
}
