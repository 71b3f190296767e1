//! Dry runs and simulated uplinks over HTTP. v2 has them over gRPC only, so these paths are our own.

use api::{
    handler::{DryDownlinkMessage, DryDownlinkResult, DryUplinkMessage, DryUplinkResult},
    rest::handler::{self as body, Cost},
};
use axum::extract::{Path, State};
use server::{
    auth::Presented,
    json::{Json, JsonObject},
};

use super::{ApplicationPath, DevicePath, Reply, Shared, fill_from_path};
use crate::api::operations::DryRun;

/// Decodes a payload with the functions in the body.
pub(super) async fn dry_uplink(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
    JsonObject(mut body): JsonObject<body::DryUplink>,
) -> Reply<Json<body::DryUplinkResult>> {
    fill_from_path("app_id", &mut body.app.app_id, path.app_id)?;
    let payload = body.payload.clone();
    let run: DryRun<Vec<u8>> = DryUplinkMessage::from(body).try_into()?;
    let decoded = operations.dry_uplink(caller?, run).await?;
    Ok(Json(DryUplinkResult { payload, ..decoded.into() }.into()))
}

/// Encodes fields with the encoder in the body.
pub(super) async fn dry_downlink(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
    JsonObject(mut body): JsonObject<body::DryDownlink>,
) -> Reply<Json<body::DryDownlinkResult>> {
    fill_from_path("app_id", &mut body.app.app_id, path.app_id)?;
    let run = DryDownlinkMessage::from(body).try_into()?;
    let encoded = operations.dry_downlink(caller?, run).await?;
    Ok(Json(DryDownlinkResult::from(encoded).into()))
}

/// Handles an uplink as if the device had sent it, and returns what it cost.
pub(super) async fn simulate_uplink(
    State(operations): Shared,
    Path(path): Path<DevicePath>,
    Presented(caller): Presented,
    JsonObject(mut body): JsonObject<body::SimulatedUplink>,
) -> Reply<Json<Cost>> {
    fill_from_path("app_id", &mut body.app_id, path.app_id)?;
    fill_from_path("dev_id", &mut body.dev_id, path.dev_id)?;
    let cost = operations.simulate_uplink(caller?, body.try_into()?).await?;
    Ok(Json(Cost { fuel: cost.fuel, microseconds: cost.microseconds() }))
}
