//! Discovery's operations over HTTP, with the paths and JSON of v2. Reading needs no credentials.
//!
//! v2 only had the first two reads of [`reading`]; the other paths are ours.

mod changing;
mod reading;

use std::sync::Arc;

use aide::axum::{
    ApiRouter,
    routing::{get_with, post_with},
};
use axum::{Router, extract::State};
use schemars::JsonSchema;
use serde::Deserialize;
use server::{
    error_response::{ErrorFormat, ErrorResponse},
    json::Json,
    openapi::{self, About, OperationExt, doc},
};
use types::{ComponentId, Kind, ServiceName};

use crate::{Error, operations::Operations};

type Shared = State<Arc<Operations>>;
type RestResult<T> = Result<Json<T>, ErrorResponse>;

/// A component, as its path names it.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct ComponentPath {
    /// The service that the component provides.
    #[schemars(with = "ServiceName")]
    service_name: String,
    /// The component.
    #[schemars(with = "ComponentId")]
    id: String,
}

/// The routes of discovery, and `/openapi.json`, which describes them.
pub(crate) fn router(operations: Arc<Operations>) -> Router {
    let about = About {
        title: "Airlock discovery",
        description: "Which component serves what, and where. Reading needs no credentials. The two paths for reading \
                      announcements are those of The Things Network v2.",
        tags: &[],
        credentials: vec![
            ("token", openapi::bearer("An access token of the account service.")),
            ("key", openapi::header("Authorization", "`Key`, followed by an access key of the application.")),
        ],
        errors: ErrorFormat::GrpcGateway,
        failures: &[Kind::Unavailable, Kind::Exhausted],
    };
    let (router, document) = openapi::generate(about, routes);
    router.route("/openapi.json", openapi::serve(&document)).with_state(operations)
}

fn routes() -> ApiRouter<Arc<Operations>> {
    ApiRouter::new().merge(announcements()).merge(lookups())
}

fn announcements() -> ApiRouter<Arc<Operations>> {
    let component =
        get_with(reading::get_one, |op| op.doc("Get", "Get a component and what it serves").fails(&[Kind::NotFound]))
            .put_with(
                changing::announce,
                doc(
                    "Announce",
                    "Announce a component. Needs the token of that component. What the component serves is not read \
                     here.",
                ),
            )
            .post_with(changing::announce, doc("AnnounceByPost", "Announce a component; the same as PUT"));
    let metadata = post_with(changing::add_metadata, |op| {
        op.doc("AddMetadata", "Add metadata: something that a component serves")
            .fails(&[Kind::NotFound, Kind::Conflict])
    })
    .delete_with(changing::delete_metadata, |op| {
        op.doc("DeleteMetadata", "Remove metadata: something that a component serves")
            .fails(&[Kind::NotFound, Kind::Conflict])
    });
    ApiRouter::new()
        .api_route(
            "/announcements/{service_name}",
            get_with(reading::get_all, doc("GetAll", "List the components of a service")),
        )
        .api_route("/announcements/{service_name}/{id}", component)
        .api_route("/announcements/{service_name}/{id}/metadata", metadata)
}

fn lookups() -> ApiRouter<Arc<Operations>> {
    ApiRouter::new()
        .api_route(
            "/announcements/handler/by-app-id/{app_id}",
            get_with(reading::get_by_app_id, |op| {
                op.doc("GetByAppID", "Find the handler of an application").fails(&[Kind::NotFound])
            }),
        )
        .api_route(
            "/announcements/handler/by-app-eui/{app_eui}",
            get_with(reading::get_by_app_eui, |op| {
                op.doc("GetByAppEUI", "Find the handler of a join EUI").fails(&[Kind::NotFound])
            }),
        )
        .api_route(
            "/announcements/router/by-gateway-id/{gateway_id}",
            get_with(reading::get_by_gateway_id, |op| {
                op.doc("GetByGatewayID", "Find the router of a gateway").fails(&[Kind::NotFound])
            }),
        )
}

fn refuse(error: impl Into<Error>) -> ErrorResponse {
    ErrorResponse::grpc_gateway(&error.into())
}
