//! The downlink queues of devices over HTTP. v2 took downlinks over MQTT only, so these paths are our own.

use std::sync::Arc;

use aide::axum::{ApiRouter, routing::get_with};
use api::rest::handler::{self as body, DownlinkList};
use axum::extract::{Path, State};
use server::{
    auth::Presented,
    json::{Empty, Json, JsonObject},
    openapi::OperationExt,
};
use types::Kind;

use super::{DevicePath, HttpResult, Shared};
use crate::api::{operations::Operations, wire::downlink};

pub(super) fn routes() -> ApiRouter<Arc<Operations>> {
    let downlinks = get_with(list, |op| {
        op.doc("GetDownlinksForDevice", "List the downlinks that wait for a device").fails(&[Kind::NotFound])
    })
    .post_with(schedule, |op| {
        op.doc(
            "ScheduleDownlink",
            "Put a downlink into the queue of a device. The response has the bytes and the port that will be sent, and \
             what the encoder warned of.",
        )
        .fails(&[Kind::NotFound, Kind::Conflict])
    })
    .delete_with(clear, |op| {
        op.doc("DeleteDownlinksForDevice", "Empty the queue of a device. What its network has taken stays there.")
            .fails(&[Kind::NotFound])
    });
    ApiRouter::new().api_route("/applications/{app_id}/devices/{dev_id}/downlinks", downlinks)
}

async fn schedule(
    State(operations): Shared,
    Path(path): Path<DevicePath>,
    Presented(caller): Presented,
    JsonObject(body): JsonObject<body::Downlink>,
) -> HttpResult<Json<body::Downlink>> {
    let ids = path.ids()?;
    let scheduled = operations.schedule_downlink(caller?, (&ids).into(), &downlink::downlink(body)?).await?;
    Ok(Json(downlink::scheduled_body(scheduled)))
}

async fn list(
    State(operations): Shared,
    Path(path): Path<DevicePath>,
    Presented(caller): Presented,
) -> HttpResult<Json<DownlinkList>> {
    let ids = path.ids()?;
    let queue = operations.list_downlinks(caller?, (&ids).into()).await?;
    Ok(Json(DownlinkList { downlinks: queue.into_iter().map(downlink::queued_body).collect() }))
}

async fn clear(State(operations): Shared, Path(path): Path<DevicePath>, Presented(caller): Presented) -> HttpResult {
    let ids = path.ids()?;
    operations.clear_downlinks(caller?, (&ids).into()).await?;
    Ok(Json(Empty {}))
}
