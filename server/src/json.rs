//! JSON bodies that describe themselves in OpenAPI documents by their types.

use aide::{
    OperationInput, OperationOutput,
    generate::GenContext,
    openapi::{Operation, Response as Description, StatusCode},
};
use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    response::{IntoResponse, Response},
};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use types::Kind;

use crate::{
    error_response::{ErrorFormat, ErrorResponse},
    openapi,
};

/// A JSON object as the body of a request, whatever its content type says.
///
/// An array would be read member by member, and nothing at all as defaults: both would empty what they were meant to
/// change.
#[derive(Clone, Copy, Debug)]
pub struct JsonObject<T>(pub T);

/// A JSON body of a response with status 200.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json<T>(pub T);

/// Nothing: `{}`.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[schemars(extend("maxProperties" = 0))]
pub struct Empty {}

/// Fills in what the body omits from the path. If both have it, they must agree; otherwise `refuse` makes the error
/// from the name and the reason.
pub fn fill_from_path<E>(
    what: &'static str,
    body: &mut String,
    path: String,
    refuse: impl FnOnce(&'static str, String) -> E,
) -> Result<(), E> {
    if body.is_empty() || *body == path {
        *body = path;
        return Ok(());
    }
    Err(refuse(what, format!("the path says `{path}`, the body says `{body}`")))
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonObject<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let bytes = Bytes::from_request(request, state).await.map_err(IntoResponse::into_response)?;
        let refuse = |reason: &dyn std::fmt::Display| {
            ErrorResponse::new(ErrorFormat::GrpcGateway, Kind::Invalid, format!("Body not valid: {reason}"))
                .into_response()
        };
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err(refuse(&"it must be a JSON object"));
        }
        serde_json::from_slice(&bytes).map(Self).map_err(|error| refuse(&error))
    }
}

impl<T: JsonSchema> OperationInput for JsonObject<T> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        openapi::body::<T>(context, operation, &["application/json"]);
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}

impl<T: JsonSchema> OperationOutput for Json<T> {
    type Inner = T;

    fn operation_response(context: &mut GenContext, _: &mut Operation) -> Option<Description> {
        Some(openapi::response::<T>(context))
    }

    fn inferred_responses(context: &mut GenContext, _: &mut Operation) -> Vec<(Option<StatusCode>, Description)> {
        vec![(Some(StatusCode::Code(200)), openapi::response::<T>(context))]
    }
}
