//! Finds the credential of a call in its headers.

use std::convert::Infallible;

use aide::{OperationInput, generate::GenContext, openapi::Operation};
use axum::{
    extract::FromRequestParts,
    http::{Extensions, HeaderMap, HeaderValue, request::Parts},
};
use types::Credential;

use super::AuthError;
use crate::usage::Usage;

/// The standard header, with a scheme in front of the credential.
const AUTHORIZATION: &str = "authorization";
/// Headers with a token alone: gRPC metadata, and what a gRPC gateway maps to it.
const TOKEN: [&str; 2] = ["token", "grpc-metadata-token"];
/// Headers with an access key alone.
const KEY: [&str; 2] = ["key", "grpc-metadata-key"];
/// All headers that may have a credential, the one that takes precedence first.
const CREDENTIAL_HEADERS: [&str; 5] = [AUTHORIZATION, TOKEN[0], TOKEN[1], KEY[0], KEY[1]];

/// A caller: its credential, if there is one, and the use of its call.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// Token or access key; none if the request brought neither.
    pub credential: Option<Credential>,
    /// Charged to the caller once it is authenticated.
    pub usage: Usage,
}

/// The caller of a request; its credential is read at once, but refused only where it is needed.
#[derive(Clone, Debug)]
pub struct Presented(pub Result<Caller, AuthError>);

impl Caller {
    /// The caller of a request with these headers and extensions.
    pub fn of(headers: &HeaderMap, extensions: &Extensions) -> Result<Self, AuthError> {
        Ok(Self { credential: credential_of(headers)?, usage: Usage::in_extensions(extensions) })
    }
}

/// A caller whose usage is not charged to anybody.
impl From<Option<Credential>> for Caller {
    fn from(credential: Option<Credential>) -> Self {
        Self { credential, usage: Usage::default() }
    }
}

impl<S: Sync> FromRequestParts<S> for Presented {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(Caller::of(&parts.headers, &parts.extensions)))
    }
}

/// A token or an access key, as [`crate::http::openapi::About`] names them.
impl OperationInput for Presented {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let schemes = ["token", "key"].map(|name| [(name.to_owned(), Vec::new())].into());
        operation.security.extend(schemes);
    }
}

/// Returns the credential of an HTTP or gRPC request, if it has one.
///
/// `Authorization` takes precedence over `token`, and `token` over `key`, as in v2; an empty value counts as absent. A
/// repeated header is refused, but for the same token twice, which v2's network brokers send. Query strings, cookies and
/// bodies are never read.
pub fn credential_of(headers: &HeaderMap) -> Result<Option<Credential>, AuthError> {
    let Some((header, _)) = credential_header(headers) else { return Ok(None) };
    let text = single(headers, header)?;
    Ok(Some(match header {
        AUTHORIZATION => Credential::from_header(text)?,
        _ if TOKEN.contains(&header) => Credential::from_token(text)?,
        _ => Credential::from_key(text)?,
    }))
}

/// The header from which [`credential_of`] takes the credential, with its first value.
pub(crate) fn credential_header(headers: &HeaderMap) -> Option<(&'static str, &HeaderValue)> {
    let mut sent = CREDENTIAL_HEADERS.into_iter().filter_map(|name| Some((name, headers.get(name)?)));
    let is_repeated = |name| headers.get_all(name).iter().nth(1).is_some();
    sent.find(|(name, value)| is_repeated(*name) || !value.as_bytes().trim_ascii().is_empty())
}

fn single<'a>(headers: &'a HeaderMap, header: &'static str) -> Result<&'a str, AuthError> {
    let mut values = headers.get_all(header).iter();
    let repeated = AuthError::Repeated { header };
    let Some(value) = values.next() else { return Err(repeated) };
    if values.any(|other| !TOKEN.contains(&header) || other != value) {
        return Err(repeated);
    }
    Ok(value.to_str().map_err(|_| AuthError::Text { header })?.trim())
}
