//! Error responses of the REST API.

use aide::OperationOutput;
use api::rest::handler::{FunctionFailure, GatewayError};
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use schemars::JsonSchema;
use serde::Serialize;
use server::{error_response::ErrorResponse, status};
use types::{Kind, Kinded};

use crate::{Error, FunctionError};

#[derive(Debug)]
pub(super) struct HttpError(Error);

/// An error; when a payload function failed, also where and why.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FunctionError")]
pub(super) struct FunctionErrorBody {
    #[serde(flatten)]
    error: GatewayError,
    #[serde(flatten)]
    failure: FunctionFailure,
}

impl<T: Into<Error>> From<T> for HttpError {
    fn from(error: T) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        match &self.0 {
            Error::Function(error) if self.0.kind() == Kind::Invalid => function_error(error, self.0.to_string()),
            error => ErrorResponse::grpc_gateway(error).into_response(),
        }
    }
}

/// Errors are described by their kind, in [`server::openapi`].
impl OperationOutput for HttpError {
    type Inner = Self;
}

fn function_error(error: &FunctionError, message: String) -> Response {
    let kind = Kind::Invalid;
    let failure = api::handler::FunctionFailure::from(error).into();
    let error = GatewayError { error: message.clone(), code: status::grpc(kind).into(), message };
    (status::http(kind), Json(FunctionErrorBody { error, failure })).into_response()
}
