//! Error bodies of REST responses, as the account service and the gRPC gateway of v2 wrote them.

use aide::OperationOutput;
use api::rest::{account::ErrorBody, handler::GatewayError};
use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use tonic::Code;
use types::{Kind, Kinded, RateLimitExceeded};

use crate::error::status;

/// The format of error bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorFormat {
    /// `{"code": 404, "error": "…"}`: the code is the HTTP status.
    Account,
    /// `{"error": "…", "code": 5, "message": "…"}`: the code is the gRPC code.
    GrpcGateway,
}

/// An error on its way to a REST client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorResponse {
    format: ErrorFormat,
    status: StatusCode,
    code: Code,
    message: String,
    exceeded: Option<RateLimitExceeded>,
}

impl ErrorResponse {
    /// A response in the format of the account service; the text of an internal error goes to the log only.
    pub fn account(error: &impl Kinded) -> Self {
        Self::of(ErrorFormat::Account, error)
    }

    /// A response in the format of handler and discovery; the text of an internal error goes to the log only.
    pub fn grpc_gateway(error: &impl Kinded) -> Self {
        Self::of(ErrorFormat::GrpcGateway, error)
    }

    /// A response for a failure without an error type, such as a body that axum refused.
    pub fn new(format: ErrorFormat, kind: Kind, message: impl Into<String>) -> Self {
        Self { format, status: status::http(kind), code: status::grpc(kind), message: message.into(), exceeded: None }
    }

    /// Sets an HTTP status that no kind stands for, such as 405.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    fn of(format: ErrorFormat, error: &impl Kinded) -> Self {
        let response = Self::new(format, error.kind(), status::public_text(error));
        Self { exceeded: error.exceeded().copied(), ..response }
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let Self { format, status, code, message, exceeded } = self;
        let mut response = match format {
            ErrorFormat::Account => Json(ErrorBody { code: status.as_u16(), error: message }).into_response(),
            ErrorFormat::GrpcGateway => {
                Json(GatewayError { error: message.clone(), code: code as i32, message }).into_response()
            }
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
        (exceeded.map(|exceeded| exceeded.headers()), response).into_response()
    }
}

/// Errors are described by their kind, in [`crate::http::openapi`].
impl OperationOutput for ErrorResponse {
    type Inner = Self;
}
