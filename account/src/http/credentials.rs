//! Credentials of requests, and whether the client accepts JSON.

use axum::{
    extract::{FromRequestParts, OptionalFromRequestParts},
    http::{HeaderMap, header, request::Parts},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use server::{
    auth::{AuthError, credential_of},
    usage::Usage,
};
use types::{CREDENTIAL_BYTES_MAX, Credential, Secret};

use super::error::HttpError;
use crate::{Account, Error, entity::access::Caller, oauth::Basic};

/// True if the client accepts JSON.
///
/// Such clients get a JSON body where the specification has none or a bare value. v2 SDKs rely on it.
pub(crate) struct WantsJson(pub(crate) bool);

/// True if the client parses the response to a creation: it accepts JSON, or sends no `Accept` header, as v2's SDK
/// for Java.
pub(crate) struct ParsesCreated(pub(crate) bool);

/// Authentication in the header of a token or exchange request.
pub(crate) enum RequestAuth {
    None,
    Client(Basic),
    Bearer(Caller),
}

impl FromRequestParts<Account> for Caller {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, HttpError> {
        let credential = credential_of(&parts.headers).map_err(Error::from)?.ok_or(Error::from(AuthError::Missing))?;
        Ok(account.caller_of(parts, credential).await?)
    }
}

/// For public endpoints. Missing credentials are fine, invalid ones are not.
impl OptionalFromRequestParts<Account> for Caller {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Option<Self>, HttpError> {
        match credential_of(&parts.headers).map_err(Error::from)? {
            Some(credential) => Ok(Some(account.caller_of(parts, credential).await?)),
            None => Ok(None),
        }
    }
}

impl FromRequestParts<Account> for RequestAuth {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, HttpError> {
        if let Some(basic) = basic(&parts.headers)? {
            return Ok(Self::Client(basic));
        }
        match credential_of(&parts.headers).map_err(Error::from)? {
            Some(credential) => Ok(Self::Bearer(account.caller_of(parts, credential).await?)),
            None => Ok(Self::None),
        }
    }
}

impl FromRequestParts<Account> for WantsJson {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &Account) -> Result<Self, HttpError> {
        Ok(Self(accepts_json(&parts.headers)))
    }
}

impl FromRequestParts<Account> for ParsesCreated {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &Account) -> Result<Self, HttpError> {
        Ok(Self(accepts_json(&parts.headers) || !parts.headers.contains_key(header::ACCEPT)))
    }
}

fn accepts_json(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter();
    accepted.any(|value| value.to_str().is_ok_and(|text| text.contains("application/json")))
}

impl Account {
    /// Verifies the credential of a request, and says who makes it.
    pub(super) async fn caller_of(&self, parts: &Parts, credential: Credential) -> Result<Caller, Error> {
        let caller = self.caller(credential).await?;
        if let Caller::Bearer(claims) = &caller {
            Usage::in_extensions(&parts.extensions).set_caller(claims);
        }
        Ok(caller)
    }

    /// Verifies a credential, and that the user did not revoke it.
    pub(crate) async fn caller(&self, credential: Credential) -> Result<Caller, Error> {
        Ok(match credential {
            Credential::Token(token) => {
                let claims = self.signer.verify(&token, self.clock.now())?;
                self.check_not_ended(&claims).await?;
                Caller::Bearer(Box::new(claims))
            }
            Credential::Key(key) => Caller::Key(key),
        })
    }
}

/// Parses Basic credentials, if present.
fn basic(headers: &HeaderMap) -> Result<Option<Basic>, Error> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let first = values.next().and_then(|value| value.to_str().ok()).and_then(|value| value.trim().split_once(' '));
    let Some((_, encoded)) = first.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic")) else { return Ok(None) };
    if values.next().is_some() {
        return Err(AuthError::Repeated { header: "authorization" }.into());
    }
    if encoded.len() > CREDENTIAL_BYTES_MAX {
        return Err(Error::Invalid { what: "authorization", must: "must have at most 16384 bytes" });
    }
    let invalid = || Error::Invalid { what: "authorization", must: "must be Basic with base64 of <id>:<secret>" };
    let decoded = STANDARD.decode(encoded.trim()).map_err(|_| invalid())?;
    let text = String::from_utf8(decoded).map_err(|_| invalid())?;
    let (id, secret) = text.split_once(':').ok_or_else(invalid)?;
    Ok(Some(Basic { id: id.to_owned(), secret: Secret::new(secret) }))
}
