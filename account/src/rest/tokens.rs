//! `/users/token`, the token exchanges, and the public keys.

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
        credentials::RequestAuth,
        path::EntityPath,
        peer::Peer,
        reply::{ExchangeReply, Reply},
    },
    metrics,
    oauth::{Basic, RevokeRequest},
    token::TOKEN_SECONDS,
};

/// A `Cache-Control` header.
pub(super) type CacheControl = [(HeaderName, &'static str); 1];
pub(super) const NO_STORE: CacheControl = [(header::CACHE_CONTROL, "no-store")];
/// The next public key is published an hour before it signs.
const FIVE_MINUTES: CacheControl = [(header::CACHE_CONTROL, "public, max-age=300")];

pub(super) async fn token(
    State(account): State<Account>,
    Peer(from): Peer,
    auth: RequestAuth,
    AnyBody(request): AnyBody<TokenRequest>,
) -> Result<(CacheControl, Json<TokenAnswer>), Reply> {
    Ok((NO_STORE, Json(account.token(client(auth)?, request, from).await?)))
}

/// Answers 200 to every authenticated client, whether or not the token existed.
///
/// The empty object is for libraries that expect JSON.
pub(super) async fn revoke(
    State(account): State<Account>,
    auth: RequestAuth,
    AnyBody(request): AnyBody<RevokeRequest>,
) -> Result<(CacheControl, Json<Value>), Reply> {
    account.revoke(client(auth)?, request).await?;
    Ok((NO_STORE, Json(json!({}))))
}

pub(super) async fn restrict(
    State(account): State<Account>,
    caller: Caller,
    JsonBody(request): JsonBody<RestrictRequest>,
) -> Result<(CacheControl, Json<RestrictAnswer>), Reply> {
    let access_token = account.restrict_token(&caller, &request.scope).await?;
    metrics::issued("restrict");
    Ok((NO_STORE, Json(RestrictAnswer { access_token })))
}

pub(super) async fn exchange(
    State(account): State<Account>,
    auth: RequestAuth,
    AnyBody(request): AnyBody<TokenRequest>,
) -> Result<(CacheControl, Json<TokenAnswer>), ExchangeReply> {
    let missing = || Error::Invalid { what: "body", must: "must have username and password: application id and key" };
    let app_id = request.username.as_deref().ok_or_else(missing)?;
    let key = request.password.ok_or_else(missing)?;
    exchanged(&account, auth, app_id, &key).await
}

pub(super) async fn exchange_for(
    State(account): State<Account>,
    auth: RequestAuth,
    EntityPath(app_id): EntityPath<Application>,
    AnyBody(request): AnyBody<TokenRequest>,
) -> Result<(CacheControl, Json<TokenAnswer>), ExchangeReply> {
    if request.username.is_some_and(|username| username != app_id.as_str()) {
        return Err(
            Error::Invalid { what: "username", must: "must be the application in the path, or left out" }.into()
        );
    }
    let missing = || Error::Invalid { what: "body", must: "must have password: an access key" };
    let key = request.password.ok_or_else(missing)?;
    exchanged(&account, auth, app_id.as_str(), &key).await
}

pub(super) async fn key(State(account): State<Account>) -> Result<(CacheControl, Json<KeyDocument>), Reply> {
    let document = KeyDocument { algorithm: "ES256".to_owned(), key: account.signer.pem()? };
    Ok((FIVE_MINUTES, Json(document)))
}

pub(super) async fn jwks(State(account): State<Account>) -> Result<(CacheControl, Json<JwkSet>), Reply> {
    Ok((FIVE_MINUTES, Json(account.signer.jwks()?)))
}

pub(super) async fn metadata(State(account): State<Account>) -> (CacheControl, Json<Metadata>) {
    (FIVE_MINUTES, Json(account.metadata()))
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

/// Exchanges an access key. Other credentials are optional, but must be valid.
async fn exchanged(
    account: &Account,
    auth: RequestAuth,
    app_id: &str,
    key: &Secret,
) -> Result<(CacheControl, Json<TokenAnswer>), ExchangeReply> {
    match auth {
        RequestAuth::None => {}
        RequestAuth::Client(basic) => account.check_client(basic).await?,
        RequestAuth::Bearer(caller) => caller.component()?,
    }
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
    let answer =
        TokenAnswer { token_type: None, access_token: exchanged?, expires_in: TOKEN_SECONDS, refresh_token: None };
    Ok((NO_STORE, Json(answer)))
}
