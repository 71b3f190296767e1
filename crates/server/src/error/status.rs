//! Maps the kind of an error to an HTTP status and a gRPC code.

use std::{error::Error, fmt};

use axum::http::StatusCode;
use tonic::{Code, Status, metadata::MetadataValue};
use types::{Kind, Kinded};

/// Metadata of a gRPC status that says that storage is full.
const FULL_METADATA: &str = "storage-full";

pub(crate) const INTERNAL: &str = "internal error";

/// The HTTP status for this kind of error.
pub fn http(kind: Kind) -> StatusCode {
    table(kind).0
}

/// The gRPC code for this kind of error.
pub fn grpc(kind: Kind) -> Code {
    table(kind).1
}

/// The gRPC status of this error; the text of an internal error goes to the log only.
pub fn to_status(error: &impl Kinded) -> Status {
    let mut status = Status::new(grpc(error.kind()), public_text(error));
    if error.kind() == Kind::Full {
        // gRPC has one code for a full store and for a limit of calls, but only the latter is worth another attempt.
        status.metadata_mut().insert(FULL_METADATA, MetadataValue::from_static("true"));
    }
    if let Some(exceeded) = error.exceeded() {
        status.metadata_mut().insert("retry-after", MetadataValue::from(exceeded.wait_s));
    }
    status
}

/// Displays an error and its sources, for logs: `cannot open the store: permission denied`.
pub struct ErrorChain<'a>(pub &'a dyn Error);

impl fmt::Display for ErrorChain<'_> {
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

/// The text that the caller may read; logs the error unless the caller caused it.
pub(crate) fn public_text(error: &impl Kinded) -> String {
    match error.kind() {
        Kind::Internal => {
            tracing::error!(error = %ErrorChain(error), "request failed: internal error");
            INTERNAL.to_owned()
        }
        Kind::Unavailable | Kind::Timeout if !error.is_cause_logged() => {
            tracing::warn!(error = %ErrorChain(error), "request failed: a dependency is unavailable");
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
        Kind::Full => (StatusCode::INSUFFICIENT_STORAGE, Code::ResourceExhausted),
        Kind::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, Code::OutOfRange),
        Kind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable),
        Kind::Timeout => (StatusCode::GATEWAY_TIMEOUT, Code::DeadlineExceeded),
        Kind::Unsupported => (StatusCode::NOT_IMPLEMENTED, Code::Unimplemented),
        Kind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, Code::Internal),
    }
}
