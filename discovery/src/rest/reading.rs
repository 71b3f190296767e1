//! Finding components by id, by service, and by what they serve.

use std::collections::HashMap;

use aide::{OperationInput, generate::GenContext, openapi::Operation};
use api::rest::discovery::{Announcement, AnnouncementsResponse};
use axum::{
    extract::{FromRequestParts, Path, Query, State},
    http::{HeaderMap, request::Parts},
    response::{IntoResponse, Response},
};
use schemars::JsonSchema;
use serde::Deserialize;
use server::{grpc, json::Json, openapi, usage::Usage};
use types::{AppEui, AppId, GatewayId, ServiceName};

use super::{ComponentPath, RestResult, Shared, refuse};
use crate::{Error, error::Result, registry::Page};

/// A service, as its path names it.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct ServicePath {
    /// The service that the components provide.
    #[schemars(with = "ServiceName")]
    service_name: String,
}

/// An application, as its path names it.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct AppIdPath {
    /// The application.
    #[schemars(with = "AppId")]
    app_id: String,
}

/// A gateway, as its path names it.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct GatewayIdPath {
    /// The gateway.
    #[schemars(with = "GatewayId")]
    gateway_id: String,
}

/// A join EUI, as its path names it.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct AppEuiPath {
    /// 8 bytes as hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9A-Fa-f]{16}$"))]
    app_eui: String,
}

/// Which part of a list to read.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used; the last of several values counts")]
struct PageParameters {
    /// Maximum number of components to list; 0 lists as many as a response holds.
    #[serde(default)]
    limit: u32,
    /// Number of components to skip.
    #[serde(default)]
    offset: u32,
}

pub(super) struct PageQuery(Result<Page>);

impl<S: Send + Sync> FromRequestParts<S> for PageQuery {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> std::result::Result<Self, Response> {
        let query = Query::<HashMap<String, String>>::try_from_uri(&parts.uri);
        query.map(|Query(query)| Self(page(&query, &parts.headers))).map_err(IntoResponse::into_response)
    }
}

impl OperationInput for PageQuery {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        openapi::query_parameters::<PageParameters>(context, operation);
    }
}

pub(super) async fn get_all(
    State(operations): Shared,
    Path(path): Path<ServicePath>,
    PageQuery(page): PageQuery,
    usage: Usage,
) -> RestResult<AnnouncementsResponse> {
    let page = page.map_err(refuse)?;
    // An unknown service has no components.
    let Ok(service) = path.service_name.parse() else { return Ok(Json::default()) };
    let services = operations.get_all(service, page, &usage).await.map_err(refuse)?;
    Ok(Json(AnnouncementsResponse { services: services.into_iter().map(Into::into).collect() }))
}

pub(super) async fn get_one(
    State(operations): Shared,
    Path(path): Path<ComponentPath>,
    usage: Usage,
) -> RestResult<Announcement> {
    let service = path.service_name.parse().map_err(refuse)?;
    let announcement = operations.get(service, &path.id.parse().map_err(refuse)?, &usage).await.map_err(refuse)?;
    Ok(Json(announcement.into()))
}

pub(super) async fn get_by_app_id(State(operations): Shared, Path(path): Path<AppIdPath>) -> RestResult<Announcement> {
    let app_id = path.app_id.parse().map_err(refuse)?;
    Ok(Json(operations.get_by_app_id(app_id).await.map_err(refuse)?.into()))
}

pub(super) async fn get_by_gateway_id(
    State(operations): Shared,
    Path(path): Path<GatewayIdPath>,
) -> RestResult<Announcement> {
    let gateway_id = path.gateway_id.parse().map_err(refuse)?;
    Ok(Json(operations.get_by_gateway_id(gateway_id).await.map_err(refuse)?.into()))
}

pub(super) async fn get_by_app_eui(
    State(operations): Shared,
    Path(path): Path<AppEuiPath>,
) -> RestResult<Announcement> {
    let app_eui: AppEui = path
        .app_eui
        .parse()
        .map_err(|_| refuse(Error::invalid("AppEUI", "must be 8 bytes, which are 16 hexadecimal digits")))?;
    Ok(Json(operations.get_by_app_eui(app_eui).await.map_err(refuse)?.into()))
}

/// Reads the requested page.
fn page(query: &HashMap<String, String>, headers: &HeaderMap) -> Result<Page> {
    let number = |name: &'static str| match query.get(name) {
        None => grpc::number_in_header(headers, name, Error::invalid),
        Some(text) => text.parse().map_err(|_| Error::invalid(name, "must be a whole number from 0 up")),
    };
    Ok(Page { limit: number("limit")?, offset: number("offset")? })
}
