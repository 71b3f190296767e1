//! Error responses.

use api::rest::account::ErrorBody;
use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use schemars::JsonSchema;
use serde::Serialize;
use server::error_response::ErrorResponse;
use types::{Kind, Kinded};

use crate::{Error, oauth::OAuthErrorCode};

/// An error response.
#[derive(Debug)]
pub(crate) struct HttpError(Error);

/// The error of a token request, as both OAuth 2.0 and this API define it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OAuthError")]
pub(crate) struct OAuthBody<'a> {
    code: u16,
    /// A word of RFC 6749, such as `invalid_grant`.
    error: &'static str,
    error_description: &'a str,
}

/// The error of a key exchange: `error` is in the specification, and v2 handlers read `description`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ExchangeError")]
pub(crate) struct ExchangeBody {
    code: u16,
    error: String,
    description: String,
}

/// An error response of a key exchange.
pub(crate) struct ExchangeError(Error);

impl<T: Into<Error>> From<T> for HttpError {
    fn from(error: T) -> Self {
        Self(error.into())
    }
}

impl<T: Into<Error>> From<T> for ExchangeError {
    fn from(error: T) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        match &self.0 {
            Error::OAuth { code, reason } => oauth(*code, reason),
            Error::ContentType(_) => with_status(&self.0, StatusCode::UNSUPPORTED_MEDIA_TYPE),
            Error::MethodNotAllowed => with_status(&self.0, StatusCode::METHOD_NOT_ALLOWED),
            Error::Busy => ([(header::RETRY_AFTER, "1")], ErrorResponse::account(&self.0)).into_response(),
            error => ErrorResponse::account(error).into_response(),
        }
    }
}

impl IntoResponse for ExchangeError {
    fn into_response(self) -> Response {
        let Self(error) = self;
        if error.kind() != Kind::Unauthenticated {
            return HttpError(error).into_response();
        }
        let description = error.to_string();
        let code = StatusCode::UNAUTHORIZED;
        let body = ExchangeBody { code: code.as_u16(), error: description.clone(), description };
        let mut response = (code, Json(body)).into_response();
        // Without a challenge it is the key that is wrong, and not the credential of the component that sent it.
        if !matches!(error, Error::InvalidKey(_)) {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"airlock\""));
        }
        response
    }
}

/// For statuses that no error kind maps to.
fn with_status(error: &Error, status: StatusCode) -> Response {
    (status, Json(ErrorBody { code: status.as_u16(), error: error.to_string() })).into_response()
}

fn oauth(code: OAuthErrorCode, reason: &str) -> Response {
    let status = match code {
        OAuthErrorCode::InvalidClient => StatusCode::UNAUTHORIZED,
        _ => StatusCode::BAD_REQUEST,
    };
    let body = OAuthBody { code: status.as_u16(), error: code.as_str(), error_description: reason };
    let mut response = (status, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response();
    if code == OAuthErrorCode::InvalidClient {
        let challenge = HeaderValue::from_static("Basic realm=\"airlock\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}
