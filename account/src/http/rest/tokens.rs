//! `/users/token`, the token exchanges, and the public keys.

use std::net::IpAddr;

use api::rest::account::{KeyDocument, RestrictRequest, RestrictResponse, TokenRequest, TokenResponse};
use axum::extract::State;
use jsonwebtoken::jwk::JwkSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use server::json::Empty;
use types::{AccessKey, AppId, Secret};

use crate::{
    Account, Error, Metadata, OAuthErrorCode,
    entity::{Entity, access::Caller, application::Application},
    http::{
        body::{AnyBody, JsonBody},
        credentials::RequestAuth,
        error::{ExchangeError, HttpError},
        openapi::responses::{NoStore, Public},
        path::EntityPath,
        peer::Peer,
    },
    metrics,
    oauth::{Basic, RevokeRequest, client::authenticated_twice},
    token::lifetime::TOKEN_SECONDS,
};

/// A token with all its members.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("required" = ["token_type", "access_token", "expires_in", "refresh_token"]))]
pub(super) struct Token(TokenResponse);

/// A request for a token; which members count depends on the grant.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("required" = ["grant_type"]))]
pub(super) struct Grant(TokenRequest);

/// An access key and its application, as `password` and `username`.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("required" = ["username", "password"]))]
pub(super) struct Exchange(TokenRequest);

/// An access key, as `password`.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("required" = ["password"]))]
pub(super) struct ExchangeOf(TokenRequest);

/// The public keys that verify tokens (RFC 7517).
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend(
    "required" = ["keys"],
    "properties" = { "keys": { "type": "array", "items": { "type": "object" }, "minItems": 1 } },
))]
pub(super) struct KeySet(#[schemars(with = "serde_json::Map<String, serde_json::Value>")] JwkSet);

pub(super) async fn token(
    State(account): State<Account>,
    Peer(from): Peer,
    auth: RequestAuth,
    AnyBody(Grant(request)): AnyBody<Grant>,
) -> Result<NoStore<Token>, HttpError> {
    Ok(NoStore(Token(account.token(client(auth)?, request, from).await?)))
}

/// Answers 200 to every authenticated client, whether or not the token existed.
///
/// The empty object is for libraries that expect JSON.
pub(super) async fn revoke(
    State(account): State<Account>,
    Peer(from): Peer,
    auth: RequestAuth,
    AnyBody(request): AnyBody<RevokeRequest>,
) -> Result<NoStore<Empty>, HttpError> {
    account.revoke(client(auth)?, request, from).await?;
    Ok(NoStore(Empty {}))
}

pub(super) async fn restrict(
    State(account): State<Account>,
    caller: Caller,
    JsonBody(request): JsonBody<RestrictRequest>,
) -> Result<NoStore<RestrictResponse>, HttpError> {
    let access_token = account.restrict_token(&caller, &request.scope).await?;
    metrics::issued("restrict");
    Ok(NoStore(RestrictResponse { access_token }))
}

pub(super) async fn exchange(
    State(account): State<Account>,
    Peer(from): Peer,
    auth: RequestAuth,
    AnyBody(Exchange(request)): AnyBody<Exchange>,
) -> Result<NoStore<TokenResponse>, ExchangeError> {
    let missing = || Error::Invalid {
        what: "body",
        must: "must have username (the application id) and password (the access key)",
    };
    let app_id = request.username.as_deref().ok_or_else(missing)?;
    let key = request.password.as_ref().ok_or_else(missing)?;
    check_sender(&account, (auth, from), &request).await?;
    exchanged(&account, app_id, key).await
}

pub(super) async fn exchange_for(
    State(account): State<Account>,
    Peer(from): Peer,
    auth: RequestAuth,
    EntityPath(app_id): EntityPath<Application>,
    AnyBody(ExchangeOf(request)): AnyBody<ExchangeOf>,
) -> Result<NoStore<TokenResponse>, ExchangeError> {
    if request.username.as_ref().is_some_and(|username| username != app_id.as_str()) {
        return Err(Error::Invalid { what: "username", must: "must be the application in the path, if present" }.into());
    }
    let missing = || Error::Invalid { what: "body", must: "must have password (the access key)" };
    let key = request.password.as_ref().ok_or_else(missing)?;
    check_sender(&account, (auth, from), &request).await?;
    exchanged(&account, app_id.as_str(), key).await
}

pub(super) async fn key(State(account): State<Account>) -> Result<Public<KeyDocument>, HttpError> {
    let document = KeyDocument { algorithm: "ES256".to_owned(), key: account.signer.pem()? };
    Ok(Public(document))
}

pub(super) async fn jwks(State(account): State<Account>) -> Result<Public<KeySet>, HttpError> {
    Ok(Public(KeySet(account.signer.jwks()?)))
}

pub(super) async fn metadata(State(account): State<Account>) -> Public<Metadata> {
    Public(account.metadata())
}

/// The client credentials in the header, if there are any.
fn client(auth: RequestAuth) -> Result<Option<Basic>, Error> {
    match auth {
        RequestAuth::Client(basic) => Ok(Some(basic)),
        RequestAuth::None => Ok(None),
        RequestAuth::Bearer(_) => {
            Err(Error::oauth(OAuthErrorCode::InvalidRequest, "a token cannot ask for a token here"))
        }
    }
}

/// Checks who sends an exchange. Credentials beside the access key are optional, but must be valid.
async fn check_sender(
    account: &Account,
    (auth, from): (RequestAuth, IpAddr),
    request: &TokenRequest,
) -> Result<(), Error> {
    let body = (request.client_id.as_deref(), &request.client_secret);
    match auth {
        RequestAuth::None if request.client_id.is_none() && request.client_secret.is_none() => Ok(()),
        RequestAuth::None => account.check_client(None, body, from).await,
        RequestAuth::Client(basic) => account.check_client(Some(basic), body, from).await,
        RequestAuth::Bearer(_) if request.client_secret.is_some() => Err(authenticated_twice()),
        RequestAuth::Bearer(caller) => caller.component(),
    }
}

async fn exchanged(account: &Account, app_id: &str, key: &Secret) -> Result<NoStore<TokenResponse>, ExchangeError> {
    // Malformed ids and keys are answered like wrong ones.
    let (Ok(app_id), Ok(key)) = (app_id.parse::<AppId>(), key.expose().parse::<AccessKey>()) else {
        metrics::refused("access_key");
        return Err(Error::InvalidKey(Application::NOUN).into());
    };
    let exchanged = account.exchange_key(&app_id, &key).await;
    match &exchanged {
        Ok(_) => metrics::issued("access_key"),
        Err(_) => metrics::refused("access_key"),
    }
    let response =
        TokenResponse { token_type: None, access_token: exchanged?, expires_in: TOKEN_SECONDS, refresh_token: None };
    Ok(NoStore(response))
}
