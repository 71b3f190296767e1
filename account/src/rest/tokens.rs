//! Tokens: `/users/token`, the exchanges, and the keys that verify them.

use api::rest::account::{KeyDocument, RestrictAnswer, RestrictRequest, TokenAnswer, TokenRequest};
use axum::{
    Json,
    extract::State,
    http::{HeaderName, header},
};
use jsonwebtoken::jwk::JwkSet;
use serde_json::{Value, json};
use types::{AccessKey, AppId, Secret};

use crate::{
    Account, Error, Metadata, OAuthErrorCode,
    application::Application,
    entity::{Entity, access::Caller},
    http::{
        body::{AnyBody, JsonBody},
        credentials::Asker,
        path::EntityPath,
        peer::Peer,
        reply::{ExchangeReply, Reply},
    },
    metrics,
    oauth::{Basic, RevokeRequest},
    token::TOKEN_SECONDS,
};

/// Cache control.
pub(super) type Kept = [(HeaderName, &'static str); 1];
/// Tokens must not be cached.
pub(super) const NO_STORE: Kept = [(header::CACHE_CONTROL, "no-store")];
/// Public keys may be: the next one is published an hour before it signs.
const FOR_MINUTES: Kept = [(header::CACHE_CONTROL, "public, max-age=300")];

pub(super) async fn token(
    State(account): State<Account>,
    Peer(from): Peer,
    asker: Asker,
    AnyBody(request): AnyBody<TokenRequest>,
) -> Result<(Kept, Json<TokenAnswer>), Reply> {
    Ok((NO_STORE, Json(account.token(client(asker)?, request, from).await?)))
}

/// Always answers 200 to an authenticated client, without telling whether the token existed.
///
/// The empty object is for libraries that require JSON.
pub(super) async fn revoke(
    State(account): State<Account>,
    asker: Asker,
    AnyBody(request): AnyBody<RevokeRequest>,
) -> Result<(Kept, Json<Value>), Reply> {
    account.revoke(client(asker)?, request).await?;
    Ok((NO_STORE, Json(json!({}))))
}

pub(super) async fn restrict(
    State(account): State<Account>,
    caller: Caller,
    JsonBody(request): JsonBody<RestrictRequest>,
) -> Result<(Kept, Json<RestrictAnswer>), Reply> {
    let access_token = account.restrict_token(&caller, &request.scope).await?;
    metrics::issued("restrict");
    Ok((NO_STORE, Json(RestrictAnswer { access_token })))
}

pub(super) async fn exchange(
    State(account): State<Account>,
    asker: Asker,
    AnyBody(request): AnyBody<TokenRequest>,
) -> Result<(Kept, Json<TokenAnswer>), ExchangeReply> {
    let missing = || Error::Invalid { what: "body", must: "must have username and password: application id and key" };
    let app_id = request.username.as_deref().ok_or_else(missing)?;
    let key = request.password.ok_or_else(missing)?;
    exchanged(&account, asker, app_id, &key).await
}

pub(super) async fn exchange_for(
    State(account): State<Account>,
    asker: Asker,
    EntityPath(app_id): EntityPath<Application>,
    AnyBody(request): AnyBody<TokenRequest>,
) -> Result<(Kept, Json<TokenAnswer>), ExchangeReply> {
    if request.username.is_some_and(|username| username != app_id.as_str()) {
        return Err(
            Error::Invalid { what: "username", must: "must be the application in the path, or left out" }.into()
        );
    }
    let missing = || Error::Invalid { what: "body", must: "must have password: an access key" };
    let key = request.password.ok_or_else(missing)?;
    exchanged(&account, asker, app_id.as_str(), &key).await
}

pub(super) async fn key(State(account): State<Account>) -> Result<(Kept, Json<KeyDocument>), Reply> {
    let document = KeyDocument { algorithm: "ES256".to_owned(), key: account.signer.pem()? };
    Ok((FOR_MINUTES, Json(document)))
}

pub(super) async fn jwks(State(account): State<Account>) -> Result<(Kept, Json<JwkSet>), Reply> {
    Ok((FOR_MINUTES, Json(account.signer.jwks()?)))
}

pub(super) async fn metadata(State(account): State<Account>) -> (Kept, Json<Metadata>) {
    (FOR_MINUTES, Json(account.metadata()))
}

/// The client in the request's header, if any.
fn client(asker: Asker) -> Result<Option<Basic>, Error> {
    match asker {
        Asker::Client(basic) => Ok(Some(basic)),
        Asker::Nobody => Ok(None),
        Asker::Bearer(_) => Err(Error::oauth(OAuthErrorCode::InvalidRequest, "a token cannot ask for a token here")),
    }
}

/// Exchanges a key, which is sufficient by itself. Client credentials are optional, but must be valid.
async fn exchanged(
    account: &Account,
    asker: Asker,
    app_id: &str,
    key: &Secret,
) -> Result<(Kept, Json<TokenAnswer>), ExchangeReply> {
    match asker {
        Asker::Nobody => {}
        Asker::Client(basic) => account.check_client(basic).await?,
        Asker::Bearer(caller) => caller.component()?,
    }
    // Malformed ids and keys get the same error as wrong ones.
    let (Ok(app_id), Ok(key)) = (app_id.parse::<AppId>(), key.expose().parse::<AccessKey>()) else {
        metrics::refused("access_key");
        return Err(Error::InvalidKey(Application::NOUN).into());
    };
    let exchanged = account.exchange_key(&app_id, &key).await;
    match &exchanged {
        Ok(_) => metrics::issued("access_key"),
        Err(_) => metrics::refused("access_key"),
    }
    let answer =
        TokenAnswer { token_type: None, access_token: exchanged?, expires_in: TOKEN_SECONDS, refresh_token: None };
    Ok((NO_STORE, Json(answer)))
}
