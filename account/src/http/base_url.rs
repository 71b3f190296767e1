//! The base URL of this service as a client reached it, for URLs in responses.

use std::fmt;

use axum::{
    extract::FromRequestParts,
    http::{header, request::Parts, uri::Authority},
};

use crate::Account;

/// Scheme and host, without a trailing slash.
///
/// The setting `public_url` takes precedence. Otherwise the host comes from the request, but only into the response to
/// that request. Without a valid host, URLs are paths.
pub(crate) struct Address(String);

impl FromRequestParts<Account> for Address {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, Self::Rejection> {
        if let Some(url) = &account.settings.public_url {
            return Ok(Self(url.to_string()));
        }
        let header = parts.headers.get(header::HOST).and_then(|value| value.to_str().ok());
        let authority = parts.uri.authority().cloned().or_else(|| header?.parse::<Authority>().ok());
        let plain = authority.filter(|authority| !authority.as_str().contains('@'));
        // This service has TLS only behind a proxy, which requires the setting.
        Ok(Self(plain.map(|authority| format!("http://{authority}")).unwrap_or_default()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
