//! The credential of a call, wherever its headers carry it.

use axum::http::HeaderMap;
use types::{Credential, Secret};

use super::AuthError;

/// The standard header; its value names the scheme.
const AUTHORIZATION: &str = "authorization";
/// Headers with a bare token: gRPC metadata, and what the REST gateway passes on as such.
const TOKEN: [&str; 2] = ["token", "grpc-metadata-token"];
/// Headers with a bare access key.
const KEY: [&str; 2] = ["key", "grpc-metadata-key"];

/// The credential of a call over HTTP or gRPC; none when it brings none.
///
/// `Authorization` comes before `token`, and `token` before `key`, as in the handlers of v2; an empty value counts as
/// absent. A header that comes twice is refused, and a query string, cookie or body is never read.
pub fn credential_of(headers: &HeaderMap) -> Result<Option<Credential>, AuthError> {
    if let Some(value) = single(headers, AUTHORIZATION)? {
        return Ok(Some(Credential::from_header(value)?));
    }
    for name in TOKEN {
        if let Some(token) = single(headers, name)? {
            return Ok(Some(Credential::Token(Secret::new(token))));
        }
    }
    for name in KEY {
        if let Some(key) = single(headers, name)? {
            return Ok(Some(Credential::Key(key.parse()?)));
        }
    }
    Ok(None)
}

fn single<'a>(headers: &'a HeaderMap, header: &'static str) -> Result<Option<&'a str>, AuthError> {
    let mut values = headers.get_all(header).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(AuthError::Repeated { header });
    }
    let text = value.to_str().map_err(|_| AuthError::Text { header })?.trim();
    Ok((!text.is_empty()).then_some(text))
}
