//! Shows errors to browsers as pages instead of JSON.

use askama::Template;
use axum::{
    body::to_bytes,
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use server::site::sentence;

use super::{Frame, Page, viewer::MaybeViewer};
use crate::Account;

/// Requests under this path are from programs, whatever they accept.
const API_PREFIX: &str = "/api/";
const BYTES_MAX: usize = 64 * 1024;

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    frame: Frame,
    title: &'static str,
    text: String,
    code: u16,
}

/// An error as JSON, from the API or from OAuth.
#[derive(Deserialize)]
struct ErrorJson {
    error: String,
    error_description: Option<String>,
}

pub(in crate::http::site) fn accepts_html(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter();
    accepted.any(|value| value.to_str().is_ok_and(|text| text.contains("text/html")))
}

/// Turns error responses to browsers into pages.
pub(crate) async fn html_errors(State(account): State<Account>, request: Request, next: Next) -> Response {
    if !accepts_html(request.headers()) || request.uri().path().starts_with(API_PREFIX) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let mut asked = parts.clone();
    let response = next.run(Request::from_parts(parts, body)).await;
    if !is_failure(&response) {
        return response;
    }
    // If the session cannot be read either, the page is shown without it.
    let viewer = MaybeViewer::from_request_parts(&mut asked, &account).await;
    page(response, viewer.map(|viewer| viewer.frame()).unwrap_or_default()).await
}

fn is_failure(response: &Response) -> bool {
    let failed = response.status().is_client_error() || response.status().is_server_error();
    failed && response.headers().get(header::CONTENT_TYPE).is_some_and(|value| value == "application/json")
}

async fn page(response: Response, frame: Frame) -> Response {
    let (parts, body) = response.into_parts();
    let json = to_bytes(body, BYTES_MAX).await.ok().and_then(|body| serde_json::from_slice::<ErrorJson>(&body).ok());
    let text = json.map(|json| json.error_description.unwrap_or(json.error)).unwrap_or_default();
    let (title, code) = (title(parts.status), parts.status.as_u16());
    let page = ErrorPage { frame, title, text: sentence(&text), code };
    let mut response = Page::new(page).with_status(parts.status).into_response();
    if let Some(wait) = parts.headers.get(header::RETRY_AFTER) {
        response.headers_mut().insert(header::RETRY_AFTER, wait.clone());
    }
    response
}

fn title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "Please log in",
        StatusCode::FORBIDDEN => "Access denied",
        StatusCode::NOT_FOUND => "Page not found",
        StatusCode::METHOD_NOT_ALLOWED => "Method not allowed",
        StatusCode::CONFLICT => "Conflicting change",
        StatusCode::TOO_MANY_REQUESTS => "Too many attempts",
        _ if status.is_server_error() => "Something went wrong",
        _ => "Invalid request",
    }
}
