//! Finds the credential of a call in its headers.

use std::convert::Infallible;

use aide::{OperationInput, generate::GenContext, openapi::Operation};
use axum::{
    extract::FromRequestParts,
    http::{Extensions, HeaderMap, request::Parts},
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
/// All headers that may have a credential.
pub(crate) const CREDENTIAL_HEADERS: [&str; 5] = [AUTHORIZATION, TOKEN[0], TOKEN[1], KEY[0], KEY[1]];

/// Who calls: a credential, if there is one, and what the call uses.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The credential.
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

/// A token or an access key, as [`crate::openapi::About`] names them.
impl OperationInput for Presented {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let schemes = ["token", "key"].map(|name| [(name.to_owned(), Vec::new())].into());
        operation.security.extend(schemes);
    }
}

/// Returns the credential of an HTTP or gRPC request, if it has one.
///
/// `Authorization` takes precedence over `token`, and `token` over `key`, as in v2; an empty value counts as absent. A
/// repeated header is refused. Query strings, cookies and bodies are never read.
pub fn credential_of(headers: &HeaderMap) -> Result<Option<Credential>, AuthError> {
    if let Some(value) = single(headers, AUTHORIZATION)? {
        return Ok(Some(Credential::from_header(value)?));
    }
    for name in TOKEN {
        if let Some(token) = single(headers, name)? {
            return Ok(Some(Credential::from_token(token)?));
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
