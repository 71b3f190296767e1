//! The handler's operations over HTTP, with the paths and JSON of The Things Network v2.

use std::sync::Arc;

use api::rest::handler as body;
use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, Query, State},
    http::HeaderMap,
    response::{AppendHeaders, IntoResponse, Response},
    routing::{get, post},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use server::{auth::credential_of, reply::ErrorReply};

use crate::{
    Error,
    body::{app_id, dev_id},
    operations::Operations,
};

type Shared = State<Arc<Operations>>;
type Answer<T = Json<Value>> = Result<T, ErrorReply>;

/// The routes of the application manager.
pub(crate) fn router(operations: Arc<Operations>) -> Router {
    let device = get(get_device).put(set_device).post(set_device).delete(delete_device);
    let application = get(get_application).put(set_application).post(set_application).delete(delete_application);
    Router::new()
        .route("/applications", post(register_application))
        .route("/applications/{app_id}", application)
        .route("/applications/{app_id}/devices", get(list_devices).put(add_device).post(add_device))
        .route("/applications/{app_id}/devices/{dev_id}", device)
        .route("/applications/{app_id}/devices/{dev_id}/simulate", post(simulate_uplink))
        .with_state(operations)
}

/// What a simulated uplink cost.
#[derive(Serialize)]
struct CostBody {
    /// Units of fuel.
    fuel: u64,
    /// Time in the sandbox.
    microseconds: u128,
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
    let body: body::Application = parse(&bytes).map_err(refuse)?;
    let app_id = app_id(&body.app_id).map_err(refuse)?;
    operations.register_application(caller(&headers)?, &app_id).await.map_err(refuse)?;
    Ok(empty())
}

async fn get_application(
    State(operations): Shared,
    Path(app): Path<String>,
    headers: HeaderMap,
) -> Answer<Json<body::Application>> {
    let app_id = app_id(&app).map_err(refuse)?;
    let application = operations.get_application(caller(&headers)?, &app_id).await.map_err(refuse)?;
    Ok(Json(application.into()))
}

async fn set_application(
    State(operations): Shared,
    Path(app): Path<String>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answer {
    let mut body: body::Application = parse(&bytes).map_err(refuse)?;
    agree("app_id", &mut body.app_id, app).map_err(refuse)?;
    let application = body.try_into().map_err(refuse)?;
    operations.set_application(caller(&headers)?, application).await.map_err(refuse)?;
    Ok(empty())
}

async fn delete_application(State(operations): Shared, Path(app): Path<String>, headers: HeaderMap) -> Answer {
    let app_id = app_id(&app).map_err(refuse)?;
    operations.delete_application(caller(&headers)?, &app_id).await.map_err(refuse)?;
    Ok(empty())
}

async fn list_devices(
    State(operations): Shared,
    Path(app): Path<String>,
    part: Result<Query<Part>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
) -> Answer<Response> {
    let app_id = app_id(&app).map_err(refuse)?;
    let Query(part) = part.map_err(|_| refuse(Error::invalid("Limit or offset", "must be whole numbers from 0 up")))?;
    let page = operations.list_devices(caller(&headers)?, &app_id, part.offset, part.limit).await.map_err(refuse)?;
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
    let (app_id, dev_id) = (app_id(&app).map_err(refuse)?, dev_id(&dev).map_err(refuse)?);
    let device = operations.get_device(caller(&headers)?, &app_id, &dev_id).await.map_err(refuse)?;
    Ok(Json(device.into()))
}

async fn add_device(State(operations): Shared, Path(app): Path<String>, headers: HeaderMap, bytes: Bytes) -> Answer {
    let body: body::Device = parse(&bytes).map_err(refuse)?;
    let dev = body.dev_id.clone();
    set(&operations, &headers, body, app, dev).await
}

async fn set_device(
    State(operations): Shared,
    Path((app, dev)): Path<(String, String)>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answer {
    set(&operations, &headers, parse(&bytes).map_err(refuse)?, app, dev).await
}

async fn set(operations: &Operations, headers: &HeaderMap, mut body: body::Device, app: String, dev: String) -> Answer {
    agree("app_id", &mut body.app_id, app).map_err(refuse)?;
    agree("dev_id", &mut body.dev_id, dev).map_err(refuse)?;
    operations.set_device(caller(headers)?, body.try_into().map_err(refuse)?).await.map_err(refuse)?;
    Ok(empty())
}

async fn delete_device(
    State(operations): Shared,
    Path((app, dev)): Path<(String, String)>,
    headers: HeaderMap,
) -> Answer {
    let (app_id, dev_id) = (app_id(&app).map_err(refuse)?, dev_id(&dev).map_err(refuse)?);
    operations.delete_device(caller(&headers)?, &app_id, &dev_id).await.map_err(refuse)?;
    Ok(empty())
}

async fn simulate_uplink(
    State(operations): Shared,
    Path((app, dev)): Path<(String, String)>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answer<Json<CostBody>> {
    let mut body: body::SimulatedUplink = parse(&bytes).map_err(refuse)?;
    agree("app_id", &mut body.app_id, app).map_err(refuse)?;
    agree("dev_id", &mut body.dev_id, dev).map_err(refuse)?;
    let uplink = body.try_into().map_err(refuse)?;
    let cost = operations.simulate_uplink(caller(&headers)?, uplink).await.map_err(refuse)?;
    Ok(Json(CostBody { fuel: cost.fuel, microseconds: cost.elapsed.as_micros() }))
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

fn caller(headers: &HeaderMap) -> Result<Option<types::Credential>, ErrorReply> {
    credential_of(headers).map_err(|error| refuse(error.into()))
}

fn empty() -> Json<Value> {
    Json(json!({}))
}

#[expect(clippy::needless_pass_by_value, reason = "what `map_err` gives is given away")]
fn refuse(error: Error) -> ErrorReply {
    ErrorReply::gateway(&error)
}
