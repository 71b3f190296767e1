//! `/openapi.json` and `/docs`: the documentation of the API.

use axum::{
    extract::State,
    http::{HeaderName, header},
    response::{IntoResponse, Response},
};

use crate::Account;

/// The page runs and loads nothing.
const PAGE: [(HeaderName, &str); 4] = [
    (header::CONTENT_TYPE, "text/html; charset=utf-8"),
    (header::CACHE_CONTROL, "public, max-age=300"),
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
];
const DOCUMENT: [(HeaderName, &str); 2] =
    [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "public, max-age=300")];

pub(super) async fn document(State(account): State<Account>) -> Response {
    let body = account.description.get().map(|description| description.document.clone());
    (DOCUMENT, body.unwrap_or_default()).into_response()
}

pub(super) async fn page(State(account): State<Account>) -> Response {
    let body = account.description.get().map(|description| description.page.clone());
    (PAGE, body.unwrap_or_default()).into_response()
}
