//! Finding components by id, by service, and by what they serve.

use std::collections::HashMap;

use api::rest::discovery::{Announcement, AnnouncementsResponse};
use axum::{
    Json,
    extract::{Path, Query, State},
};
use types::AppEui;

use super::{Answer, Shared, refuse};
use crate::{Error, error::Result, registry::Page};

pub(super) async fn get_all(
    State(operations): Shared,
    Path(service_name): Path<String>,
    Query(query): Query<HashMap<String, String>>,
) -> Answer<AnnouncementsResponse> {
    let page = page(&query).map_err(refuse)?;
    // An unknown service has no components.
    let Ok(service) = service_name.parse() else { return Ok(Json::default()) };
    let services = operations.get_all(service, page).await.map_err(refuse)?;
    Ok(Json(AnnouncementsResponse { services: services.into_iter().map(Into::into).collect() }))
}

pub(super) async fn get_one(
    State(operations): Shared,
    Path((service_name, id)): Path<(String, String)>,
) -> Answer<Announcement> {
    let service = service_name.parse().map_err(refuse)?;
    let announcement = operations.get(service, &id.parse().map_err(refuse)?).await.map_err(refuse)?;
    Ok(Json(announcement.into()))
}

pub(super) async fn get_by_app_id(State(operations): Shared, Path(app_id): Path<String>) -> Answer<Announcement> {
    let app_id = app_id.parse().map_err(refuse)?;
    Ok(Json(operations.get_by_app_id(app_id).await.map_err(refuse)?.into()))
}

pub(super) async fn get_by_gateway_id(
    State(operations): Shared,
    Path(gateway_id): Path<String>,
) -> Answer<Announcement> {
    let gateway_id = gateway_id.parse().map_err(refuse)?;
    Ok(Json(operations.get_by_gateway_id(gateway_id).await.map_err(refuse)?.into()))
}

/// In a path, a join EUI is 16 hexadecimal digits.
pub(super) async fn get_by_app_eui(State(operations): Shared, Path(app_eui): Path<String>) -> Answer<Announcement> {
    let app_eui: AppEui = app_eui
        .parse()
        .map_err(|_| refuse(Error::invalid("AppEUI", "must be 8 bytes, which are 16 hexadecimal digits")))?;
    Ok(Json(operations.get_by_app_eui(app_eui).await.map_err(refuse)?.into()))
}

/// Reads the requested page.
fn page(query: &HashMap<String, String>) -> Result<Page> {
    let number = |name: &'static str| match query.get(name) {
        None => Ok(0),
        Some(text) => text.parse().map_err(|_| Error::invalid(name, "must be a number")),
    };
    Ok(Page { limit: number("limit")?, offset: number("offset")? })
}
