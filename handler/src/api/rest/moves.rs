//! Moves of devices over HTTP. v2 had none, so this path is our own.

use std::sync::Arc;

use aide::axum::{ApiRouter, routing::post_with};
use api::{
    device::MoveDeviceRequest,
    rest::handler::{DeviceMove, MovedDevice},
};
use axum::extract::{Path, State};
use server::{
    auth::Presented,
    json::{Json, JsonObject},
    openapi::OperationExt,
};
use types::Kind;

use super::{DevicePath, HttpResult, Shared};
use crate::api::{operations::Operations, wire::device_move};

pub(super) fn routes() -> ApiRouter<Arc<Operations>> {
    let moves = post_with(move_device, |op| {
        op.doc(
            "MoveDevice",
            "Move a device to another application of this handler, with its keys, session and counters. Its messages \
             stay in the history of the old application, and downlinks that wait for it are dropped.",
        )
        .fails(&[Kind::NotFound, Kind::Conflict])
    });
    ApiRouter::new().api_route("/applications/{app_id}/devices/{dev_id}/move", moves)
}

async fn move_device(
    State(operations): Shared,
    Path(path): Path<DevicePath>,
    Presented(caller): Presented,
    JsonObject(body): JsonObject<DeviceMove>,
) -> HttpResult<Json<MovedDevice>> {
    let DevicePath { app_id, dev_id } = path;
    let request = MoveDeviceRequest { app_id, dev_id, to_app_id: body.app_id, to_dev_id: body.dev_id };
    let moving = device_move::device_move(&request)?;
    let to = moving.to.clone();
    let dropped = operations.move_device(caller?, moving).await?;
    Ok(Json(device_move::body(to, dropped)))
}
