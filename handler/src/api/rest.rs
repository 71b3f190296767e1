//! The handler's operations over HTTP, with the paths and JSON of The Things Network v2.

mod candidates;
mod downlinks;
mod dry_run;
mod error;
mod find;
mod history;
mod moves;
mod silence;
mod uplinks;
mod versions;
mod webhooks;

use std::sync::Arc;

use aide::{
    OperationOutput,
    axum::{
        ApiRouter,
        routing::{get_with, post_with},
    },
    generate::GenContext,
    openapi::{Operation, Response as Description, StatusCode},
};
use api::rest::handler as body;
use axum::{
    Router,
    body::Bytes,
    extract::{Path, Query, State, rejection::QueryRejection},
    http::{self, HeaderMap},
    response::{IntoResponse, Response},
};
use schemars::JsonSchema;
use serde::Deserialize;
use server::{
    auth::{AuthError, Caller, Presented},
    error_response::ErrorFormat,
    grpc,
    json::{Empty, Json, JsonObject, fill_from_path, list_in_pieces},
    openapi::{self, About, OperationExt},
};
use types::{AppId, DevId, Kind};

use self::error::{FunctionErrorBody, HttpError};
pub(crate) use self::uplinks::is_stream;
use crate::{
    Error,
    api::{
        operations::Operations,
        wire::{app_id, device_ids},
    },
    registry::device,
};

type Shared = State<Arc<Operations>>;
type HttpResult<T = Json<Empty>> = Result<T, HttpError>;

/// An application, as its path names it.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct ApplicationPath {
    /// The application.
    #[schemars(with = "AppId")]
    app_id: String,
}

/// A device, as its path names it.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct DevicePath {
    /// The application.
    #[schemars(with = "AppId")]
    app_id: String,
    /// The device.
    #[schemars(with = "DevId")]
    dev_id: String,
}

impl DevicePath {
    fn ids(&self) -> Result<(AppId, DevId), Error> {
        device_ids(&self.app_id, &self.dev_id)
    }
}

/// Which page of a list to read.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct PageQuery {
    /// Maximum number of devices to list; 0 lists as many as a response holds.
    #[serde(default)]
    limit: Option<usize>,
    /// Number of devices to skip.
    #[serde(default)]
    offset: Option<usize>,
}

/// Names an application; other members are checked, but not used.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("required" = ["app_id"]))]
struct Registration(body::HandlerApplication);

/// A page of devices, with the counts in headers.
struct DevicePageResponse {
    /// [`body::DeviceList`] as JSON.
    list: Bytes,
    selected: usize,
    total: usize,
}

/// The routes of the application manager, and `/openapi.json`, which describes them.
pub(crate) fn router(operations: Arc<Operations>) -> Router {
    let about = About {
        title: "Airlock handler",
        description: "Applications, their payload functions and devices. Responses omit members with default \
                      values. Except for candidates, changes of many devices, downlinks, dry runs, history, moves, \
                      searches, silence, simulated uplinks, versions and webhooks, the paths are those of The Things \
                      Network v2.",
        tags: &[],
        credentials: vec![
            ("token", openapi::bearer("An access token of the account service.")),
            ("key", openapi::header("Authorization", "`Key`, followed by an access key of the application.")),
        ],
        errors: ErrorFormat::GrpcGateway,
        failures: &[Kind::Exhausted, Kind::Unavailable],
    };
    let (router, document) = openapi::generate(about, || {
        ApiRouter::new()
            .merge(applications())
            .merge(candidates::routes())
            .merge(devices())
            .merge(downlinks::routes())
            .merge(dry_runs())
            .merge(find::routes())
            .merge(history::routes())
            .merge(moves::routes())
            .merge(silence::routes())
            .merge(uplinks::routes())
            .merge(versions::routes())
            .merge(webhooks::routes())
    });
    router.route("/openapi.json", openapi::serve(&document)).with_state(operations)
}

fn applications() -> ApiRouter<Arc<Operations>> {
    let application = get_with(get_application, |op| {
        op.doc("GetApplication", "Get the settings of an application").fails(&[Kind::NotFound])
    })
    .put_with(set_application, |op| {
        op.doc(
            "SetApplication",
            "Replace the settings of an application. Omitted members are cleared. If the functions cannot be \
             loaded, nothing changes.",
        )
        .fails(&[Kind::NotFound, Kind::Conflict])
    })
    .post_with(set_application, |op| {
        op.doc("SetApplicationByPost", "Replace the settings of an application; the same as PUT")
            .fails(&[Kind::NotFound, Kind::Conflict])
    })
    .delete_with(delete_application, |op| {
        op.doc("DeleteApplication", "Delete an application with its devices").fails(&[Kind::NotFound])
    });
    let register = post_with(register_application, |op| {
        op.doc("RegisterApplication", "Register an application with this handler")
            .fails(&[Kind::NotFound, Kind::Conflict])
    });
    ApiRouter::new().api_route("/applications", register).api_route("/applications/{app_id}", application)
}

fn devices() -> ApiRouter<Arc<Operations>> {
    let list = get_with(list_devices, |op| {
        op.doc("GetDevicesForApplication", "List the devices of an application by id").fails(&[Kind::NotFound])
    })
    .put_with(add_device, |op| {
        op.doc("SetDeviceOfBody", "Create or replace the device named in the body")
            .fails(&[Kind::NotFound, Kind::Conflict])
    })
    .post_with(add_device, |op| {
        op.doc("SetDeviceOfBodyByPost", "Create or replace the device named in the body; the same as PUT")
            .fails(&[Kind::NotFound, Kind::Conflict])
    });
    let device =
        get_with(get_device, |op| op.doc("GetDevice", "Get a device").fails(&[Kind::NotFound, Kind::Conflict]))
            .put_with(set_device, |op| {
                op.doc(
                    "SetDevice",
                    "Create or replace a device. Omitted members are cleared, except for the address and the keys.",
                )
                .fails(&[Kind::NotFound, Kind::Conflict])
            })
            .post_with(set_device, |op| {
                op.doc("SetDeviceByPost", "Create or replace a device; the same as PUT")
                    .fails(&[Kind::NotFound, Kind::Conflict])
            })
            .delete_with(delete_device, |op| op.doc("DeleteDevice", "Delete a device").fails(&[Kind::NotFound]));
    ApiRouter::new()
        .api_route("/applications/{app_id}/devices", list)
        .api_route("/applications/{app_id}/devices/{dev_id}", device)
}

fn dry_runs() -> ApiRouter<Arc<Operations>> {
    let simulate = post_with(dry_run::simulate_uplink, |op| {
        op.doc("SimulateUplink", "Handle an uplink as if the device had sent it")
            .fails(&[Kind::NotFound, Kind::Conflict])
    });
    let uplink = post_with(dry_run::dry_uplink, |op| {
        op.doc(
            "DryUplink",
            "Decode a payload without storing or publishing anything. With `record`, a stored uplink runs again: the \
             functions get its payload, port, time, seed and further input. That also takes the right to read messages.",
        )
        .fails(&[Kind::NotFound])
        .fails_with::<FunctionErrorBody>(http::StatusCode::BAD_REQUEST)
    });
    let downlink = post_with(dry_run::dry_downlink, |op| {
        op.doc("DryDownlink", "Encode fields without storing or sending anything")
            .fails_with::<FunctionErrorBody>(http::StatusCode::BAD_REQUEST)
    });
    ApiRouter::new()
        .api_route("/applications/{app_id}/devices/{dev_id}/simulate", simulate)
        .api_route("/applications/{app_id}/dry-uplink", uplink)
        .api_route("/applications/{app_id}/dry-downlink", downlink)
}

async fn register_application(
    State(operations): Shared,
    Presented(caller): Presented,
    JsonObject(Registration(body)): JsonObject<Registration>,
) -> HttpResult {
    let app_id = app_id(&body.app_id)?;
    operations.register_application(caller?, &app_id).await?;
    Ok(Json(Empty {}))
}

async fn get_application(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::HandlerApplication>> {
    let app_id = app_id(&path.app_id)?;
    let application = operations.get_application(caller?, &app_id).await?;
    Ok(Json(application.into()))
}

async fn set_application(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
    JsonObject(mut body): JsonObject<body::HandlerApplication>,
) -> HttpResult {
    fill_from_path("app_id", &mut body.app_id, path.app_id, Error::invalid)?;
    let application = body.try_into()?;
    operations.set_application(caller?, application).await?;
    Ok(Json(Empty {}))
}

async fn delete_application(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
) -> HttpResult {
    let app_id = app_id(&path.app_id)?;
    operations.delete_application(caller?, &app_id).await?;
    Ok(Json(Empty {}))
}

async fn list_devices(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    query: Result<Query<PageQuery>, QueryRejection>,
    headers: HeaderMap,
    Presented(caller): Presented,
) -> HttpResult<DevicePageResponse> {
    let app_id = app_id(&path.app_id)?;
    let Query(PageQuery { limit, offset }) =
        query.map_err(|_| Error::invalid("Limit or offset", "must be whole numbers from 0 up"))?;
    let header = |name| grpc::number_in_header(&headers, name, Error::invalid);
    let limit = limit.map_or_else(|| header("limit"), Ok)?;
    let offset = offset.map_or_else(|| header("offset"), Ok)?;
    let caller = caller?;
    let usage = caller.usage.clone();
    let (device::DevicePage { devices, total }, _turn) =
        operations.list_devices(caller, &app_id, offset, limit).await?;
    let selected = devices.len();
    let list = list_in_pieces("devices", devices, &usage, body::Device::from).await.map_err(Error::from)?;
    Ok(DevicePageResponse { list, selected, total })
}

async fn get_device(
    State(operations): Shared,
    Path(path): Path<DevicePath>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::Device>> {
    let ids = path.ids()?;
    let device = operations.get_device(caller?, (&ids).into()).await?;
    Ok(Json(device.into()))
}

async fn add_device(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
    JsonObject(body): JsonObject<body::Device>,
) -> HttpResult {
    let path = DevicePath { app_id: path.app_id, dev_id: body.dev_id.clone() };
    set(&operations, caller, body, path).await
}

async fn set_device(
    State(operations): Shared,
    Path(path): Path<DevicePath>,
    Presented(caller): Presented,
    JsonObject(body): JsonObject<body::Device>,
) -> HttpResult {
    set(&operations, caller, body, path).await
}

async fn set(
    operations: &Arc<Operations>,
    caller: Result<Caller, AuthError>,
    mut body: body::Device,
    path: DevicePath,
) -> HttpResult {
    fill_from_path("app_id", &mut body.app_id, path.app_id, Error::invalid)?;
    fill_from_path("dev_id", &mut body.dev_id, path.dev_id, Error::invalid)?;
    operations.set_device(caller?, body.try_into()?).await?;
    Ok(Json(Empty {}))
}

async fn delete_device(
    State(operations): Shared,
    Path(path): Path<DevicePath>,
    Presented(caller): Presented,
) -> HttpResult {
    let (app_id, dev_id) = path.ids()?;
    operations.delete_device(caller?, app_id, dev_id).await?;
    Ok(Json(Empty {}))
}

impl IntoResponse for DevicePageResponse {
    fn into_response(self) -> Response {
        let Self { list, selected, total } = self;
        let headers = [
            ("content-type", "application/json".to_owned()),
            ("grpc-metadata-total", total.to_string()),
            ("grpc-metadata-selected", selected.to_string()),
        ];
        (headers, list).into_response()
    }
}

impl OperationOutput for DevicePageResponse {
    type Inner = body::DeviceList;

    fn inferred_responses(context: &mut GenContext, _: &mut Operation) -> Vec<(Option<StatusCode>, Description)> {
        let list = openapi::response::<body::DeviceList>(context);
        let counts = [
            ("Grpc-Metadata-Total", "integer", "How many devices the application has."),
            ("Grpc-Metadata-Selected", "integer", "How many of them are in this response."),
        ];
        vec![(Some(StatusCode::Code(200)), openapi::with_headers(list, &counts))]
    }
}
