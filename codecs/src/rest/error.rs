//! Error responses of the codec service.

use aide::OperationOutput;
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use schemars::JsonSchema;
use serde::Serialize;
use server::{error_response::ErrorResponse, status};
use types::{Kind, Kinded};

use crate::{Error, message::FunctionFailure};

#[derive(Debug)]
pub(super) struct RestError(Error);

/// An error; when a codec failed, also where and why.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CodecError")]
pub(super) struct FailureBody {
    /// The HTTP status.
    code: u16,
    /// The problem in one sentence.
    error: String,
    #[serde(flatten)]
    failure: FunctionFailure,
}

impl<T: Into<Error>> From<T> for RestError {
    fn from(error: T) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for RestError {
    fn into_response(self) -> Response {
        match FunctionFailure::of(&self.0) {
            Some(failure) if self.0.kind() == Kind::Invalid => {
                let status = status::http(Kind::Invalid);
                let body = FailureBody { code: status.as_u16(), error: self.0.to_string(), failure };
                (status, Json(body)).into_response()
            }
            _ => ErrorResponse::account(&self.0).into_response(),
        }
    }
}

/// Errors are described by their kind, in [`server::openapi`].
impl OperationOutput for RestError {
    type Inner = Self;
}
