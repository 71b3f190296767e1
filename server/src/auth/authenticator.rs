//! Turns the credential of a call into claims, asking the account service that issued it.

use std::{collections::BTreeMap, sync::Arc};

use client::account::AccountClient;
use types::{AccessKey, AppId, ApplicationRight, Claims, Clock, Credential, Secret};

use super::{
    AuthError, TokenError,
    answers::Answers,
    issuer::{Issuer, Standing},
    verifier::Origin,
};

/// Knows who is calling.
///
/// Tokens are checked here, with keys that are read from their issuer now and then. Access keys are exchanged at their
/// issuer, and it is asked what is left of the rights in a token; both answers count for 2 seconds.
pub struct Authenticator {
    issuers: BTreeMap<String, Issuer>,
    exchanges: Answers<(AppId, AccessKey), Option<Claims>>,
    standings: Answers<(AppId, Secret), Standing>,
    clock: Arc<dyn Clock>,
}

impl Authenticator {
    /// Trusts these account services, each under the id that its tokens and access keys carry.
    pub fn new(issuers: BTreeMap<String, Arc<AccountClient>>, clock: Arc<dyn Clock>) -> Self {
        let trusted = issuers.into_iter().map(|(id, client)| {
            let issuer = Issuer::new(&id, client, Arc::clone(&clock));
            (id, issuer)
        });
        Self { issuers: trusted.collect(), exchanges: Answers::default(), standings: Answers::default(), clock }
    }

    /// The claims of a caller that shows a token.
    ///
    /// An access key is refused: it is worth something only to the application that it names.
    pub async fn authenticate(&self, credential: Option<Credential>) -> Result<Claims, AuthError> {
        match credential.ok_or(AuthError::Missing)? {
            Credential::Token(token) => self.verify(token.expose()).await,
            Credential::Key(_) => Err(AuthError::KeyWithoutApplication),
        }
    }

    /// The claims of a caller that shows a token, or an access key of this application.
    ///
    /// Valid claims are not yet a right: ask [`Claims::allows`]. Rights of a token that its user lost since are not in
    /// them, unless the account service is away.
    pub async fn authenticate_for(&self, app_id: &AppId, credential: Option<Credential>) -> Result<Claims, AuthError> {
        match credential.ok_or(AuthError::Missing)? {
            Credential::Token(token) => self.verify_for(app_id, token).await,
            Credential::Key(key) => self.exchange(app_id, &key).await,
        }
    }

    async fn verify(&self, token: &str) -> Result<Claims, AuthError> {
        let origin = Origin::of(token)?;
        let issuer = self.issuers.get(&origin.issuer).ok_or(TokenError::Issuer)?;
        let verifier = issuer.verifier(&origin.key_id).await?;
        Ok(verifier.verify(token, self.clock.now())?)
    }

    async fn verify_for(&self, app_id: &AppId, token: Secret) -> Result<Claims, AuthError> {
        let mut claims = self.verify(token.expose()).await?;
        let Some(rights) = claims.apps.get_mut(app_id) else { return Ok(claims) };
        let issuer = self.issuers.get(&claims.iss).ok_or(TokenError::Issuer)?;
        let answer = self.standings.answer((app_id.clone(), token.clone()), self.clock.now());
        match answer.get_or_init(|| issuer.standing(app_id, token)).await {
            Standing::Ended => return Err(AuthError::Ended),
            Standing::Rights(left) => rights.retain(|right: &ApplicationRight| left.contains(right)),
            Standing::Unknown => {}
        }
        Ok(claims)
    }

    async fn exchange(&self, app_id: &AppId, key: &AccessKey) -> Result<Claims, AuthError> {
        let issuer = self.issuers.get(key.issuer()).ok_or(AuthError::KeyIssuer)?;
        let answer = self.exchanges.answer((app_id.clone(), key.clone()), self.clock.now());
        let claims = answer.get_or_try_init(|| async {
            match issuer.exchange(app_id, key).await? {
                Some(token) => self.verify(token.expose()).await.map(Some),
                None => Ok(None),
            }
        });
        claims.await?.clone().ok_or_else(|| AuthError::Key { app_id: app_id.clone() })
    }
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let issuers: Vec<_> = self.issuers.keys().collect();
        out.debug_struct("Authenticator").field("issuers", &issuers).finish_non_exhaustive()
    }
}
