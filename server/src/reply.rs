//! Errors as REST clients read them: in the format of the account service, or of v2's gRPC gateway.

use aide::OperationOutput;
use api::rest::{account::ErrorBody, handler::GatewayError};
use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use tonic::Code;
use types::{Kind, Kinded};

use crate::status;

/// The format of an error body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `{"code": 404, "error": "…"}`, where the code is the HTTP status.
    Account,
    /// `{"error": "…", "code": 5, "message": "…"}`, where the code is the gRPC code.
    Gateway,
}

/// An error response to a REST client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    shape: Shape,
    status: StatusCode,
    code: Code,
    message: String,
}

impl ErrorReply {
    /// In the format of the account service. Internal errors are logged here, and not shown.
    pub fn account(error: &impl Kinded) -> Self {
        Self::of(Shape::Account, error)
    }

    /// In the format of handler and discovery. Internal errors are logged here, and not shown.
    pub fn gateway(error: &impl Kinded) -> Self {
        Self::of(Shape::Gateway, error)
    }

    /// For errors without a type of their own, such as a body that axum rejected.
    pub fn new(shape: Shape, kind: Kind, message: impl Into<String>) -> Self {
        Self { shape, status: status::http(kind), code: status::grpc(kind), message: message.into() }
    }

    /// Replaces the HTTP status, for 405 and others that no kind stands for.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    fn of(shape: Shape, error: &impl Kinded) -> Self {
        Self::new(shape, error.kind(), status::public_text(error))
    }
}

impl IntoResponse for ErrorReply {
    fn into_response(self) -> Response {
        let Self { shape, status, code, message } = self;
        let mut response = match shape {
            Shape::Account => Json(ErrorBody { code: status.as_u16(), error: message }).into_response(),
            Shape::Gateway => Json(GatewayError { error: message.clone(), code: code as i32, message }).into_response(),
        };
        *response.status_mut() = status;
        match status {
            StatusCode::UNAUTHORIZED => {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

/// Errors are described by their kind, in [`crate::openapi`].
impl OperationOutput for ErrorReply {
    type Inner = Self;
}
