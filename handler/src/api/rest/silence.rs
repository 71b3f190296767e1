//! When devices count as silent, over HTTP, with a path of our own.

use std::sync::Arc;

use aide::axum::{ApiRouter, routing::get_with};
use api::rest::handler as body;
use axum::extract::{Path, State};
use server::{
    auth::Presented,
    json::{Json, JsonObject},
    openapi::OperationExt,
};
use types::{Kind, SilentAfter};

use super::{ApplicationPath, HttpResult, Shared};
use crate::{
    Error,
    api::{operations::Operations, wire::app_id},
};

pub(super) fn routes() -> ApiRouter<Arc<Operations>> {
    let silence = get_with(get, |op| {
        op.doc("GetSilence", "Get the time after which devices count as silent").fails(&[Kind::NotFound])
    })
    .put_with(set, |op| {
        op.doc(
            "SetSilence",
            "Set the time without an uplink after which devices count as silent, and the event `silent` is published. A \
             device may have another time, or `off`, in its attribute `silent-after`.",
        )
        .fails(&[Kind::NotFound, Kind::Conflict])
    });
    ApiRouter::new().api_route("/applications/{app_id}/silence", silence)
}

async fn get(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::Silence>> {
    let silent_after = operations.get_silent_after(caller?, &app_id(&path.app_id)?).await?;
    Ok(Json(silence(silent_after)))
}

async fn set(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
    JsonObject(body): JsonObject<body::Silence>,
) -> HttpResult<Json<body::Silence>> {
    let silent_after = match body.silent_after_s {
        0 => None,
        seconds => Some(SilentAfter::try_from(seconds).map_err(|error| Error::invalid("SilentAfter", error))?),
    };
    operations.set_silent_after(caller?, &app_id(&path.app_id)?, silent_after).await?;
    Ok(Json(silence(silent_after)))
}

fn silence(silent_after: Option<SilentAfter>) -> body::Silence {
    body::Silence { silent_after_s: silent_after.map_or(0, SilentAfter::as_secs) }
}
