//! Turns the credential of a call into claims, with the help of the account service that issued it.

use std::{collections::BTreeMap, sync::Arc};

use client::account::AccountClient;
use types::{AccessKey, AppId, ApplicationRight, Claims, Clock, Credential, Secret};

use super::{
    AuthError, TokenError,
    cache::Cache,
    issuer::{Issuer, RemainingRights},
    verifier::Origin,
};

/// Authenticates callers.
///
/// It verifies tokens with their issuer's public keys, asks the issuer which rights of a token remain, and exchanges
/// access keys there. The result for a credential and an application is cached for 2 seconds.
pub struct Authenticator {
    issuers: BTreeMap<String, Issuer>,
    cache: Cache<(AppId, Credential), Option<Claims>>,
    clock: Arc<dyn Clock>,
}

impl Authenticator {
    /// Trusts these account services, each by the id that its tokens and access keys carry.
    pub fn new(issuers: BTreeMap<String, Arc<AccountClient>>, clock: Arc<dyn Clock>) -> Self {
        let trusted = issuers.into_iter().map(|(id, client)| {
            let issuer = Issuer::new(&id, client, Arc::clone(&clock));
            (id, issuer)
        });
        Self { issuers: trusted.collect(), cache: Cache::default(), clock }
    }

    /// The claims of a token. An access key is refused: it is valid only with the application that it belongs to.
    pub async fn authenticate(&self, credential: Option<Credential>) -> Result<Claims, AuthError> {
        match credential.ok_or(AuthError::Missing)? {
            Credential::Token(token) => self.verify(token.expose()).await,
            Credential::Key(_) => Err(AuthError::KeyWithoutApplication),
        }
    }

    /// The claims of a token, or of an access key of this application.
    ///
    /// Ask [`Claims::allows`] for the right. Rights that the user has lost since the token was issued are left out, unless
    /// the account service is unavailable.
    pub async fn authenticate_for(&self, app_id: &AppId, credential: Option<Credential>) -> Result<Claims, AuthError> {
        let credential = credential.ok_or(AuthError::Missing)?;
        let key = (app_id.clone(), credential.clone());
        let cell = self.cache.cell(&key, self.clock.now());
        let claims = match cell.get_or_try_init(|| self.fetch(app_id, &credential)).await {
            Ok(claims) => claims.clone(),
            Err(error) => {
                self.cache.remove(&key, &cell);
                return Err(error);
            }
        };
        claims.ok_or_else(|| match credential {
            Credential::Token(_) => AuthError::Revoked,
            Credential::Key(_) => AuthError::Key { app_id: app_id.clone() },
        })
    }

    /// The current claims of a credential; none when the account service refuses it.
    async fn fetch(&self, app_id: &AppId, credential: &Credential) -> Result<Option<Claims>, AuthError> {
        match credential {
            Credential::Token(token) => self.verify_for(app_id, token).await,
            Credential::Key(key) => self.exchange(app_id, key).await,
        }
    }

    async fn verify(&self, token: &str) -> Result<Claims, AuthError> {
        let origin = Origin::of(token)?;
        let issuer = self.issuers.get(&origin.issuer).ok_or(TokenError::Issuer)?;
        let verifier = issuer.verifier(&origin.key_id).await?;
        Ok(verifier.verify(token, self.clock.now())?)
    }

    async fn verify_for(&self, app_id: &AppId, token: &Secret) -> Result<Option<Claims>, AuthError> {
        let mut claims = self.verify(token.expose()).await?;
        let Some(rights) = claims.apps.get_mut(app_id) else { return Ok(Some(claims)) };
        let issuer = self.issuers.get(&claims.iss).ok_or(TokenError::Issuer)?;
        match issuer.remaining_rights(app_id, token.clone()).await {
            RemainingRights::Revoked => return Ok(None),
            RemainingRights::Rights(remaining) => rights.retain(|right: &ApplicationRight| remaining.contains(right)),
            RemainingRights::Unknown => {}
        }
        Ok(Some(claims))
    }

    async fn exchange(&self, app_id: &AppId, key: &AccessKey) -> Result<Option<Claims>, AuthError> {
        let issuer = self.issuers.get(key.issuer()).ok_or(AuthError::KeyIssuer)?;
        match issuer.exchange(app_id, key).await? {
            Some(token) => self.verify(token.expose()).await.map(Some),
            None => Ok(None),
        }
    }
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let issuers: Vec<_> = self.issuers.keys().collect();
        out.debug_struct("Authenticator").field("issuers", &issuers).finish_non_exhaustive()
    }
}
