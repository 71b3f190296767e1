//! Dry runs and simulated uplinks over HTTP. v2 has them over gRPC only, so these paths are our own.

use api::{
    handler::{DryDownlinkResult, DryUplinkResult, SimulatedUplinkResult},
    rest::handler as body,
};
use axum::extract::{Path, State};
use server::{
    auth::Presented,
    json::{Json, JsonObject, fill_from_path},
};

use super::{ApplicationPath, DevicePath, HttpResult, Shared};
use crate::{
    Error,
    api::{operations::DownlinkInput, wire::uplink_input},
};

pub(super) async fn dry_uplink(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
    JsonObject(mut body): JsonObject<body::DryUplink>,
) -> HttpResult<Json<body::DryUplinkResult>> {
    fill_from_path("app_id", &mut body.app.app_id, path.app_id, Error::invalid)?;
    let body::DryUplink { payload, app, port, record } = body;
    let input = uplink_input(payload, port, &record)?;
    let (payload, decoded) = operations.dry_uplink(caller?, app.try_into()?, input).await?;
    Ok(Json(DryUplinkResult { payload, ..decoded.into() }.into()))
}

pub(super) async fn dry_downlink(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
    JsonObject(mut body): JsonObject<body::DryDownlink>,
) -> HttpResult<Json<body::DryDownlinkResult>> {
    fill_from_path("app_id", &mut body.app.app_id, path.app_id, Error::invalid)?;
    let body::DryDownlink { payload, fields, app, port } = body;
    let (application, input) = (app.try_into()?, DownlinkInput { fields, payload });
    let encoded = operations.dry_downlink(caller?, application, port, input).await?;
    Ok(Json(DryDownlinkResult::from(encoded).into()))
}

pub(super) async fn simulate_uplink(
    State(operations): Shared,
    Path(path): Path<DevicePath>,
    Presented(caller): Presented,
    JsonObject(mut body): JsonObject<body::SimulatedUplink>,
) -> HttpResult<Json<body::SimulatedUplinkResult>> {
    fill_from_path("app_id", &mut body.app_id, path.app_id, Error::invalid)?;
    fill_from_path("dev_id", &mut body.dev_id, path.dev_id, Error::invalid)?;
    let simulated = operations.simulate_uplink(caller?, body.try_into()?).await?;
    Ok(Json(SimulatedUplinkResult::from(simulated).into()))
}
