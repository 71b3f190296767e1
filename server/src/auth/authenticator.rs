//! Turns the credential of a request into claims, with the help of the account service that issued it.

use std::{collections::BTreeMap, sync::Arc};

use client::account::AccountClient;
use types::{AccessKey, AppId, ApplicationRight, Claims, Clock, Credential, Secret};

use super::{
    AuthError, TokenError,
    answers::Answers,
    issuer::{Issuer, Standing},
    verifier::Origin,
};

/// Authenticates callers.
///
/// Tokens are verified here, with public keys fetched from their issuer. Access keys are exchanged at their issuer,
/// which is also asked which rights of a token still hold. Results are cached for 2 seconds, so that not every request
/// costs a signature verification.
pub struct Authenticator {
    issuers: BTreeMap<String, Issuer>,
    answers: Answers<(AppId, Credential), Option<Claims>>,
    clock: Arc<dyn Clock>,
}

impl Authenticator {
    /// Trusts these account services, by the ids in their tokens and access keys.
    pub fn new(issuers: BTreeMap<String, Arc<AccountClient>>, clock: Arc<dyn Clock>) -> Self {
        let trusted = issuers.into_iter().map(|(id, client)| {
            let issuer = Issuer::new(&id, client, Arc::clone(&clock));
            (id, issuer)
        });
        Self { issuers: trusted.collect(), answers: Answers::default(), clock }
    }

    /// Returns the claims of a token.
    ///
    /// Rejects access keys, which are only valid for the application that a request names.
    pub async fn authenticate(&self, credential: Option<Credential>) -> Result<Claims, AuthError> {
        match credential.ok_or(AuthError::Missing)? {
            Credential::Token(token) => self.verify(token.expose()).await,
            Credential::Key(_) => Err(AuthError::KeyWithoutApplication),
        }
    }

    /// Returns the claims of a token, or of an access key of this application.
    ///
    /// Valid claims do not imply a right: check [`Claims::allows`]. Rights that the user has lost since are removed
    /// from the claims, unless the account service is unavailable.
    pub async fn authenticate_for(&self, app_id: &AppId, credential: Option<Credential>) -> Result<Claims, AuthError> {
        let credential = credential.ok_or(AuthError::Missing)?;
        let name = (app_id.clone(), credential.clone());
        let answer = self.answers.answer(&name, self.clock.now());
        let known = match answer.get_or_try_init(|| self.ask(app_id, &credential)).await {
            Ok(known) => known.clone(),
            Err(error) => {
                self.answers.forget(&name, &answer);
                return Err(error);
            }
        };
        known.ok_or_else(|| match credential {
            Credential::Token(_) => AuthError::Ended,
            Credential::Key(_) => AuthError::Key { app_id: app_id.clone() },
        })
    }

    /// Returns the current claims of a credential; `None` if the account service rejects it.
    async fn ask(&self, app_id: &AppId, credential: &Credential) -> Result<Option<Claims>, AuthError> {
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
        match issuer.standing(app_id, token.clone()).await {
            Standing::Ended => return Ok(None),
            Standing::Rights(left) => rights.retain(|right: &ApplicationRight| left.contains(right)),
            Standing::Unknown => {}
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
