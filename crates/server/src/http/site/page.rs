//! Pages: their headers, and texts for users.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Response},
};

/// A page with a content security policy.
pub fn page(status: StatusCode, policy: HeaderValue, html: String) -> Response {
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy),
        // Pages are private to the current session.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        // Paths contain codes and ids. Our own forms must still send their origin, which is checked.
        (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (status, headers, Html(html)).into_response()
}

/// Capitalizes the first letter and adds a period.
pub fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_uppercase).into_iter().flatten();
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    first.chain(characters).chain(end.chars()).collect()
}
