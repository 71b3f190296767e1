//! Maps error kinds to HTTP and gRPC status codes.

use std::{error::Error, fmt};

use axum::http::StatusCode;
use tonic::{Code, Status};
use types::{Kind, Kinded};

/// What clients read instead of the details of an internal error.
pub(crate) const INTERNAL: &str = "internal error";

/// The HTTP status for an error kind.
pub fn http(kind: Kind) -> StatusCode {
    table(kind).0
}

/// The gRPC code for an error kind.
pub fn grpc(kind: Kind) -> Code {
    table(kind).1
}

/// The gRPC status for an error.
///
/// Its message is the error's text. Details of internal errors go to the log only.
pub fn to_status(error: &impl Kinded) -> Status {
    Status::new(grpc(error.kind()), public_text(error))
}

/// Formats an error with its causes, for logs: `cannot open the store: permission denied`.
pub struct Causes<'a>(pub &'a dyn Error);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)?;
        let mut next = self.0.source();
        while let Some(cause) = next {
            write!(out, ": {cause}")?;
            next = cause.source();
        }
        Ok(())
    }
}

/// The text that the caller may read. Logs errors that are not the caller's.
pub(crate) fn public_text(error: &impl Kinded) -> String {
    match error.kind() {
        Kind::Internal => {
            tracing::error!(error = %Causes(error), "request failed: internal error");
            INTERNAL.to_owned()
        }
        Kind::Unavailable | Kind::Timeout => {
            tracing::warn!(error = %Causes(error), "request failed: dependency unavailable");
            error.to_string()
        }
        _ => error.to_string(),
    }
}

fn table(kind: Kind) -> (StatusCode, Code) {
    match kind {
        Kind::Invalid => (StatusCode::BAD_REQUEST, Code::InvalidArgument),
        Kind::Unauthenticated => (StatusCode::UNAUTHORIZED, Code::Unauthenticated),
        Kind::Denied => (StatusCode::FORBIDDEN, Code::PermissionDenied),
        Kind::NotFound => (StatusCode::NOT_FOUND, Code::NotFound),
        Kind::AlreadyExists => (StatusCode::CONFLICT, Code::AlreadyExists),
        Kind::Conflict => (StatusCode::CONFLICT, Code::Aborted),
        Kind::Exhausted => (StatusCode::TOO_MANY_REQUESTS, Code::ResourceExhausted),
        Kind::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, Code::OutOfRange),
        Kind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable),
        Kind::Timeout => (StatusCode::GATEWAY_TIMEOUT, Code::DeadlineExceeded),
        Kind::Unsupported => (StatusCode::NOT_IMPLEMENTED, Code::Unimplemented),
        Kind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, Code::Internal),
    }
}
