//! Trying functions and simulating uplinks over HTTP; v2 had these over gRPC only, so the paths are ours.

use api::{
    handler::{DryDownlinkMessage, DryDownlinkResult, DryUplinkMessage, DryUplinkResult},
    rest::handler::{self as body, Cost},
};
use axum::{
    Json,
    body::Bytes,
    extract::{Path, State},
    http::HeaderMap,
};

use super::{Answer, Shared, agree, caller, parse};
use crate::operations::DryRun;

/// Shows what functions would make of a payload.
pub(super) async fn dry_uplink(
    State(operations): Shared,
    Path(app): Path<String>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answer<Json<body::DryUplinkResult>> {
    let mut body: body::DryUplink = parse(&bytes)?;
    agree("app_id", &mut body.app.app_id, app)?;
    let payload = body.payload.clone();
    let run: DryRun<Vec<u8>> = DryUplinkMessage::from(body).try_into()?;
    let decoded = operations.dry_uplink(caller(&headers)?, run).await?;
    Ok(Json(DryUplinkResult { payload, ..decoded.into() }.into()))
}

/// Shows what an encoder would make of fields.
pub(super) async fn dry_downlink(
    State(operations): Shared,
    Path(app): Path<String>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answer<Json<body::DryDownlinkResult>> {
    let mut body: body::DryDownlink = parse(&bytes)?;
    agree("app_id", &mut body.app.app_id, app)?;
    let run = DryDownlinkMessage::from(body).try_into()?;
    let encoded = operations.dry_downlink(caller(&headers)?, run).await?;
    Ok(Json(DryDownlinkResult::from(encoded).into()))
}

/// Sends an uplink on its way as if the device had sent it, and says what it cost.
pub(super) async fn simulate_uplink(
    State(operations): Shared,
    Path((app, dev)): Path<(String, String)>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answer<Json<Cost>> {
    let mut body: body::SimulatedUplink = parse(&bytes)?;
    agree("app_id", &mut body.app_id, app)?;
    agree("dev_id", &mut body.dev_id, dev)?;
    let cost = operations.simulate_uplink(caller(&headers)?, body.try_into()?).await?;
    Ok(Json(Cost { fuel: cost.fuel, microseconds: cost.microseconds() }))
}
