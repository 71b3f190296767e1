//! Errors as REST clients read them, in the shape of the account service or of the gateway before gRPC.

use api::rest::{account::ErrorBody, handler::GatewayError};
use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use tonic::Code;
use types::{Kind, Kinded};

use crate::status;

/// Which body an error gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `{"code": 404, "error": "…"}`: the code is the HTTP status.
    Account,
    /// `{"error": "…", "code": 5, "message": "…"}`: the code is the gRPC code.
    Gateway,
}

/// An error on its way to a REST client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    shape: Shape,
    status: StatusCode,
    code: Code,
    message: String,
}

impl ErrorReply {
    /// The reply of the account service; what is our own mistake is logged here and not told.
    pub fn account(error: &impl Kinded) -> Self {
        Self::of(Shape::Account, error)
    }

    /// The reply of handler and discovery; what is our own mistake is logged here and not told.
    pub fn gateway(error: &impl Kinded) -> Self {
        Self::of(Shape::Gateway, error)
    }

    /// A reply that has no error type of its own, such as a body that axum refused.
    pub fn new(shape: Shape, kind: Kind, message: impl Into<String>) -> Self {
        Self { shape, status: status::http(kind), code: status::grpc(kind), message: message.into() }
    }

    /// The same with another HTTP status: for 405 and the like, which no kind stands for.
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
