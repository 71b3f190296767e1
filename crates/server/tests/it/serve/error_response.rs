//! Errors as clients see them, in every format, without internal details.

use axum::{body::to_bytes, http::StatusCode, response::IntoResponse};
use serde_json::{Value, json};
use server::{
    error_response::ErrorResponse,
    status::{ErrorChain, grpc, http, to_status},
};
use tonic::Code;
use types::{Kind, Kinded};

#[derive(Debug, thiserror::Error)]
#[error("application `my-app` not found")]
struct Failure {
    kind: Kind,
    source: std::io::Error,
}

impl Kinded for Failure {
    fn kind(&self) -> Kind {
        self.kind
    }
}

fn failure(kind: Kind) -> Failure {
    Failure { kind, source: std::io::Error::other("/var/lib/secret is gone") }
}

async fn body(reply: ErrorResponse) -> (StatusCode, Value) {
    let response = reply.into_response();
    let status = response.status();
    (status, serde_json::from_slice(&to_bytes(response.into_body(), 1000).await.unwrap()).unwrap())
}

#[tokio::test]
async fn errors_have_the_format_of_their_service() {
    let text = "application `my-app` not found";
    let account = body(ErrorResponse::account(&failure(Kind::NotFound))).await;
    assert_eq!(account, (StatusCode::NOT_FOUND, json!({ "code": 404, "error": text })));
    let gateway = body(ErrorResponse::grpc_gateway(&failure(Kind::NotFound))).await;
    assert_eq!(gateway, (StatusCode::NOT_FOUND, json!({ "error": text, "code": 5, "message": text })));
    let status = to_status(&failure(Kind::NotFound));
    assert_eq!((status.code(), status.message()), (Code::NotFound, text));
}

#[tokio::test]
async fn internal_errors_show_no_details() {
    let account = body(ErrorResponse::account(&failure(Kind::Internal))).await;
    assert_eq!(account, (StatusCode::INTERNAL_SERVER_ERROR, json!({ "code": 500, "error": "internal error" })));
    assert_eq!(to_status(&failure(Kind::Internal)).message(), "internal error");
    let logged = ErrorChain(&failure(Kind::Internal)).to_string();
    assert_eq!(logged, "application `my-app` not found: /var/lib/secret is gone");
}

#[test]
fn every_kind_maps_to_http_and_grpc() {
    let table = [
        (Kind::Invalid, 400, Code::InvalidArgument),
        (Kind::Unauthenticated, 401, Code::Unauthenticated),
        (Kind::Denied, 403, Code::PermissionDenied),
        (Kind::NotFound, 404, Code::NotFound),
        (Kind::AlreadyExists, 409, Code::AlreadyExists),
        (Kind::Conflict, 409, Code::Aborted),
        (Kind::Exhausted, 429, Code::ResourceExhausted),
        (Kind::Full, 507, Code::ResourceExhausted),
        (Kind::TooLarge, 413, Code::OutOfRange),
        (Kind::Unavailable, 503, Code::Unavailable),
        (Kind::Timeout, 504, Code::DeadlineExceeded),
        (Kind::Unsupported, 501, Code::Unimplemented),
        (Kind::Internal, 500, Code::Internal),
    ];
    for (kind, status, code) in table {
        assert_eq!((http(kind).as_u16(), grpc(kind)), (status, code), "{kind}");
    }
}

#[test]
fn responses_tell_how_to_retry() {
    let headers = |kind| ErrorResponse::account(&failure(kind)).into_response().headers().clone();
    assert_eq!(headers(Kind::Unauthenticated)["www-authenticate"], "Bearer");
    assert_eq!(headers(Kind::Unavailable)["retry-after"], "1");
    assert!(headers(Kind::NotFound).get("retry-after").is_none());
}
