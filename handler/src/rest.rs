//! The handler's operations over HTTP, with the paths and JSON of The Things Network v2.

mod dry_run;
mod reply;

use std::sync::Arc;

use api::rest::handler as body;
use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, Query, State},
    http::{HeaderMap, header::CONTENT_TYPE},
    response::{AppendHeaders, IntoResponse, Response},
    routing::{get, post},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use server::auth::credential_of;

use crate::{
    Error,
    body::{app_id, dev_id},
    operations::{Caller, Operations},
};

use self::reply::Reply;

/// These paths and bodies, for programs.
const DESCRIPTION: &str = include_str!("../openapi.json");

type Shared = State<Arc<Operations>>;
type Answer<T = Json<Value>> = Result<T, Reply>;

/// The routes of the application manager.
pub(crate) fn router(operations: Arc<Operations>) -> Router {
    let device = get(get_device).put(set_device).post(set_device).delete(delete_device);
    let application = get(get_application).put(set_application).post(set_application).delete(delete_application);
    Router::new()
        .route("/applications", post(register_application))
        .route("/applications/{app_id}", application)
        .route("/applications/{app_id}/devices", get(list_devices).put(add_device).post(add_device))
        .route("/applications/{app_id}/devices/{dev_id}", device)
        .route("/applications/{app_id}/devices/{dev_id}/simulate", post(dry_run::simulate_uplink))
        .route("/applications/{app_id}/dry-uplink", post(dry_run::dry_uplink))
        .route("/applications/{app_id}/dry-downlink", post(dry_run::dry_downlink))
        .route("/openapi.json", get(async || ([(CONTENT_TYPE, "application/json")], DESCRIPTION)))
        .with_state(operations)
}

/// Which part of a list is wanted.
#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    limit: usize,
    #[serde(default)]
    offset: usize,
}

async fn register_application(State(operations): Shared, headers: HeaderMap, bytes: Bytes) -> Answer {
    let body: body::Application = parse(&bytes)?;
    let app_id = app_id(&body.app_id)?;
    operations.register_application(caller(&headers)?, &app_id).await?;
    Ok(empty())
}

async fn get_application(
    State(operations): Shared,
    Path(app): Path<String>,
    headers: HeaderMap,
) -> Answer<Json<body::Application>> {
    let app_id = app_id(&app)?;
    let application = operations.get_application(caller(&headers)?, &app_id).await?;
    Ok(Json(application.into()))
}

async fn set_application(
    State(operations): Shared,
    Path(app): Path<String>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answer {
    let mut body: body::Application = parse(&bytes)?;
    agree("app_id", &mut body.app_id, app)?;
    let application = body.try_into()?;
    operations.set_application(caller(&headers)?, application).await?;
    Ok(empty())
}

async fn delete_application(State(operations): Shared, Path(app): Path<String>, headers: HeaderMap) -> Answer {
    let app_id = app_id(&app)?;
    operations.delete_application(caller(&headers)?, &app_id).await?;
    Ok(empty())
}

async fn list_devices(
    State(operations): Shared,
    Path(app): Path<String>,
    part: Result<Query<Part>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
) -> Answer<Response> {
    let app_id = app_id(&app)?;
    let Query(part) = part.map_err(|_| Error::invalid("Limit or offset", "must be whole numbers from 0 up"))?;
    let page = operations.list_devices(caller(&headers)?, &app_id, part.offset, part.limit).await?;
    let counts = AppendHeaders([
        ("grpc-metadata-total", page.total.to_string()),
        ("grpc-metadata-selected", page.devices.len().to_string()),
    ]);
    let list = body::DeviceList { devices: page.devices.into_iter().map(Into::into).collect() };
    Ok((counts, Json(list)).into_response())
}

async fn get_device(
    State(operations): Shared,
    Path((app, dev)): Path<(String, String)>,
    headers: HeaderMap,
) -> Answer<Json<body::Device>> {
    let (app_id, dev_id) = (app_id(&app)?, dev_id(&dev)?);
    let device = operations.get_device(caller(&headers)?, &app_id, &dev_id).await?;
    Ok(Json(device.into()))
}

async fn add_device(State(operations): Shared, Path(app): Path<String>, headers: HeaderMap, bytes: Bytes) -> Answer {
    let body: body::Device = parse(&bytes)?;
    let dev = body.dev_id.clone();
    set(&operations, &headers, body, app, dev).await
}

async fn set_device(
    State(operations): Shared,
    Path((app, dev)): Path<(String, String)>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answer {
    set(&operations, &headers, parse(&bytes)?, app, dev).await
}

async fn set(operations: &Operations, headers: &HeaderMap, mut body: body::Device, app: String, dev: String) -> Answer {
    agree("app_id", &mut body.app_id, app)?;
    agree("dev_id", &mut body.dev_id, dev)?;
    operations.set_device(caller(headers)?, body.try_into()?).await?;
    Ok(empty())
}

async fn delete_device(
    State(operations): Shared,
    Path((app, dev)): Path<(String, String)>,
    headers: HeaderMap,
) -> Answer {
    let (app_id, dev_id) = (app_id(&app)?, dev_id(&dev)?);
    operations.delete_device(caller(&headers)?, &app_id, &dev_id).await?;
    Ok(empty())
}

/// Reads a JSON object whatever its content type says.
///
/// An array would be read member by member, and nothing at all as defaults: both would empty what they were meant to
/// change.
fn parse<T: DeserializeOwned>(bytes: &Bytes) -> Result<T, Error> {
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(Error::invalid("Body", "it must be a JSON object"));
    }
    serde_json::from_slice(bytes).map_err(|error| Error::invalid("Body", error))
}

/// Fills what a body left out with what the path says; both may say it, but not differently.
fn agree(what: &'static str, body: &mut String, path: String) -> Result<(), Error> {
    if body.is_empty() || *body == path {
        *body = path;
        return Ok(());
    }
    Err(Error::invalid(what, format_args!("the path says `{path}`, the body says `{body}`")))
}

fn caller(headers: &HeaderMap) -> Result<Caller, Error> {
    Ok(credential_of(headers)?)
}

fn empty() -> Json<Value> {
    Json(json!({}))
}
