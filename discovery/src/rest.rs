//! Discovery's operations over HTTP, with the paths and JSON of v2. Reading needs no credentials.
//!
//! v2 only had the two reads of [`reading`]; the other paths are ours.

mod changing;
mod reading;

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::State,
    http::header::CONTENT_TYPE,
    routing::{get, post},
};
use server::reply::ErrorReply;

use crate::{Error, operations::Operations};

/// These paths and bodies, for programs.
const DESCRIPTION: &str = include_str!("../openapi.json");

type Shared = State<Arc<Operations>>;
type Answer<T> = Result<Json<T>, ErrorReply>;

/// The routes of discovery.
pub(crate) fn router(operations: Arc<Operations>) -> Router {
    let component = get(reading::get_one).put(changing::announce).post(changing::announce);
    let metadata = post(changing::add_metadata).delete(changing::delete_metadata);
    Router::new()
        .route("/announcements/{service_name}", get(reading::get_all))
        .route("/announcements/{service_name}/{id}", component)
        .route("/announcements/{service_name}/{id}/metadata", metadata)
        .route("/announcements/handler/by-app-id/{app_id}", get(reading::get_by_app_id))
        .route("/announcements/handler/by-app-eui/{app_eui}", get(reading::get_by_app_eui))
        .route("/announcements/router/by-gateway-id/{gateway_id}", get(reading::get_by_gateway_id))
        .route("/openapi.json", get(async || ([(CONTENT_TYPE, "application/json")], DESCRIPTION)))
        .with_state(operations)
}

fn refuse(error: impl Into<Error>) -> ErrorReply {
    ErrorReply::gateway(&error.into())
}
