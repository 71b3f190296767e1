//! What a request says besides its body: who sends it, which thing it names, what answer it understands.

use std::str::FromStr;

use axum::{
    extract::{FromRequestParts, Path},
    http::{HeaderMap, header, request::Parts},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::de::DeserializeOwned;
use server::auth::{AuthError, credential_of};
use types::{AppId, Credential, Secret};

use super::reply::Reply;
use crate::{Account, Error, access::Caller, oauth::Basic};

/// The id of the application in the path.
pub(super) struct AppPath(pub(super) AppId);

/// The id of the application in the path, and what comes after it.
pub(super) struct AppPathAnd<T>(pub(super) AppId, pub(super) T);

/// Whether the client said that it understands JSON.
///
/// Such clients get a body where the specification has none or a bare value: SDKs of v2 cannot do without.
pub(super) struct WantsJson(pub(super) bool);

/// Who asks for a token or an exchange, if they said so in a header.
pub(super) enum Asker {
    Nobody,
    Client(Basic),
    Bearer(Caller),
}

impl FromRequestParts<Account> for Caller {
    type Rejection = Reply;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, Reply> {
        let credential = credential_of(&parts.headers).map_err(Error::from)?.ok_or(Error::from(AuthError::Missing))?;
        Ok(account.caller(credential)?)
    }
}

impl FromRequestParts<Account> for Asker {
    type Rejection = Reply;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, Reply> {
        if let Some(basic) = basic(&parts.headers)? {
            return Ok(Self::Client(basic));
        }
        match credential_of(&parts.headers).map_err(Error::from)? {
            Some(credential) => Ok(Self::Bearer(account.caller(credential)?)),
            None => Ok(Self::Nobody),
        }
    }
}

impl FromRequestParts<Account> for AppPath {
    type Rejection = Reply;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, Reply> {
        let app_id: String = path(parts, account).await?;
        Ok(Self(app_id.parse().map_err(Error::from)?))
    }
}

impl<T: FromStr<Err: Into<Error>>> FromRequestParts<Account> for AppPathAnd<T> {
    type Rejection = Reply;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, Reply> {
        let (app_id, rest): (String, String) = path(parts, account).await?;
        Ok(Self(app_id.parse().map_err(Error::from)?, rest.parse().map_err(Into::into)?))
    }
}

impl FromRequestParts<Account> for WantsJson {
    type Rejection = Reply;

    async fn from_request_parts(parts: &mut Parts, _: &Account) -> Result<Self, Reply> {
        let mut accepted = parts.headers.get_all(header::ACCEPT).iter();
        Ok(Self(accepted.any(|value| value.to_str().is_ok_and(|text| text.contains("application/json")))))
    }
}

impl Account {
    fn caller(&self, credential: Credential) -> Result<Caller, Error> {
        Ok(match credential {
            Credential::Token(token) => Caller::Bearer(Box::new(self.signer.verify(&token, self.clock.now())?)),
            Credential::Key(key) => Caller::Key(key),
        })
    }
}

async fn path<T: DeserializeOwned + Send>(parts: &mut Parts, account: &Account) -> Result<T, Error> {
    let path = Path::<T>::from_request_parts(parts, account).await;
    path.map(|Path(path)| path).map_err(|_| Error::Invalid { what: "path", must: "must be UTF-8 text" })
}

/// The id and secret of a Basic header, when there is one.
fn basic(headers: &HeaderMap) -> Result<Option<Basic>, Error> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let first = values.next().and_then(|value| value.to_str().ok()).and_then(|value| value.trim().split_once(' '));
    let Some((_, encoded)) = first.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic")) else { return Ok(None) };
    if values.next().is_some() {
        return Err(AuthError::Repeated { header: "authorization" }.into());
    }
    let invalid = || Error::Invalid { what: "authorization", must: "must be Basic with base64 of <id>:<secret>" };
    let decoded = STANDARD.decode(encoded.trim()).map_err(|_| invalid())?;
    let text = String::from_utf8(decoded).map_err(|_| invalid())?;
    let (id, secret) = text.split_once(':').ok_or_else(invalid)?;
    Ok(Some(Basic { id: id.to_owned(), secret: Secret::new(secret) }))
}
