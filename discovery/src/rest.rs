//! Discovery's operations over HTTP, with the paths and JSON of v2; reading takes no credential.

use std::{collections::HashMap, sync::Arc};

use api::rest::discovery::{Announcement, AnnouncementsResponse};
use axum::{
    Json, Router,
    extract::{Path, Query, State},
    routing::get,
};
use server::reply::ErrorReply;

use crate::{Error, error::Result, operations::Operations, registry::Page};

type Answer<T> = std::result::Result<Json<T>, ErrorReply>;

/// The routes of discovery.
pub(crate) fn router(operations: Arc<Operations>) -> Router {
    Router::new()
        .route("/announcements/{service_name}", get(get_all))
        .route("/announcements/{service_name}/{id}", get(get_one))
        .with_state(operations)
}

async fn get_all(
    State(operations): State<Arc<Operations>>,
    Path(service_name): Path<String>,
    Query(query): Query<HashMap<String, String>>,
) -> Answer<AnnouncementsResponse> {
    let page = page(&query).map_err(refuse)?;
    // A service that nobody knows has no components.
    let Ok(service) = service_name.parse() else { return Ok(Json::default()) };
    let services = operations.get_all(service, page).await.map_err(refuse)?;
    Ok(Json(AnnouncementsResponse { services: services.into_iter().map(Into::into).collect() }))
}

async fn get_one(
    State(operations): State<Arc<Operations>>,
    Path((service_name, id)): Path<(String, String)>,
) -> Answer<Announcement> {
    let service = service_name.parse().map_err(refuse)?;
    let announcement = operations.get(service, &id.parse().map_err(refuse)?).await.map_err(refuse)?;
    Ok(Json(announcement.into()))
}

/// Which part of a list is asked for.
fn page(query: &HashMap<String, String>) -> Result<Page> {
    let number = |name: &'static str| match query.get(name) {
        None => Ok(0),
        Some(text) => text.parse().map_err(|_| Error::invalid(name, "must be a number")),
    };
    Ok(Page { limit: number("limit")?, offset: number("offset")? })
}

fn refuse(error: impl Into<Error>) -> ErrorReply {
    ErrorReply::gateway(&error.into())
}
