//! Failures as REST clients read them.

use aide::OperationOutput;
use api::rest::handler::{FunctionFailure, GatewayError};
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use schemars::JsonSchema;
use serde::Serialize;
use server::{reply::ErrorReply, status};
use types::{Kind, Kinded};

use crate::{Error, error::Fault};

/// A failure on its way to a client.
#[derive(Debug)]
pub(super) struct Reply(Error);

/// An error; when a payload function failed, also where and why.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FunctionError")]
pub(super) struct FailureBody {
    #[serde(flatten)]
    error: GatewayError,
    #[serde(flatten)]
    failure: FunctionFailure,
}

impl<T: Into<Error>> From<T> for Reply {
    fn from(error: T) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        match &self.0 {
            Error::Function(fault) if self.0.kind() == Kind::Invalid => failed(fault, self.0.to_string()),
            error @ Error::Throttled { exceeded, .. } => {
                (exceeded.headers(), ErrorReply::gateway(error)).into_response()
            }
            error => ErrorReply::gateway(error).into_response(),
        }
    }
}

/// Errors are described by their kind, in [`server::openapi`].
impl OperationOutput for Reply {
    type Inner = Self;
}

fn failed(fault: &Fault, message: String) -> Response {
    let kind = Kind::Invalid;
    let error = GatewayError { error: message.clone(), code: status::grpc(kind).into(), message };
    let failure = api::handler::FunctionFailure::from(fault).into();
    (status::http(kind), Json(FailureBody { error, failure })).into_response()
}
