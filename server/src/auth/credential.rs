//! Finds the credential in the headers of a request.

use axum::http::HeaderMap;
use types::{Credential, Secret};

use super::AuthError;

/// The standard header, whose value includes the scheme.
const AUTHORIZATION: &str = "authorization";
/// Headers that contain a bare token: gRPC metadata, and its equivalent from the REST gateway.
const TOKEN: [&str; 2] = ["token", "grpc-metadata-token"];
/// Headers that contain a bare access key.
const KEY: [&str; 2] = ["key", "grpc-metadata-key"];

/// Returns the credential of an HTTP or gRPC request, if it has one.
///
/// `Authorization` takes precedence over `token`, and `token` over `key`, as in v2; empty values are ignored. A
/// repeated header is rejected. Query strings, cookies and bodies are never read.
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
