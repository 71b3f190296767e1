//! Trying functions and simulating uplinks over HTTP; v2 had these over gRPC only, so the paths are ours.

use api::{
    handler::{DryDownlinkMessage, DryDownlinkResult, DryUplinkMessage, DryUplinkResult},
    rest::handler::{self as body, Cost},
};
use axum::extract::{Path, State};
use server::{
    auth::Presented,
    json::{Json, JsonObject},
};

use super::{Answer, ApplicationPath, DevicePath, Shared, agree};
use crate::api::operations::DryRun;

/// Shows what functions would make of a payload.
pub(super) async fn dry_uplink(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
    JsonObject(mut body): JsonObject<body::DryUplink>,
) -> Answer<Json<body::DryUplinkResult>> {
    agree("app_id", &mut body.app.app_id, path.app_id)?;
    let payload = body.payload.clone();
    let run: DryRun<Vec<u8>> = DryUplinkMessage::from(body).try_into()?;
    let decoded = operations.dry_uplink(caller?, run).await?;
    Ok(Json(DryUplinkResult { payload, ..decoded.into() }.into()))
}

/// Shows what an encoder would make of fields.
pub(super) async fn dry_downlink(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
    JsonObject(mut body): JsonObject<body::DryDownlink>,
) -> Answer<Json<body::DryDownlinkResult>> {
    agree("app_id", &mut body.app.app_id, path.app_id)?;
    let run = DryDownlinkMessage::from(body).try_into()?;
    let encoded = operations.dry_downlink(caller?, run).await?;
    Ok(Json(DryDownlinkResult::from(encoded).into()))
}

/// Sends an uplink on its way as if the device had sent it, and says what it cost.
pub(super) async fn simulate_uplink(
    State(operations): Shared,
    Path(path): Path<DevicePath>,
    Presented(caller): Presented,
    JsonObject(mut body): JsonObject<body::SimulatedUplink>,
) -> Answer<Json<Cost>> {
    agree("app_id", &mut body.app_id, path.app_id)?;
    agree("dev_id", &mut body.dev_id, path.dev_id)?;
    let cost = operations.simulate_uplink(caller?, body.try_into()?).await?;
    Ok(Json(Cost { fuel: cost.fuel, microseconds: cost.microseconds() }))
}
