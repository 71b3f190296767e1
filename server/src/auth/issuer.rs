//! A trusted account service: what it says about tokens and access keys.

use std::sync::Arc;

use api::rest::account::TokenResponse;
use client::account::AccountClient;
use tokio::sync::Semaphore;
use types::{AccessKey, AppId, ApplicationRight, Claims, Clock, Credential, Kind, Kinded, Secret};

use super::{
    AuthError, ComponentToken, TokenError,
    public_keys::{CurrentKeys, PublicKeys},
    reachability::Reachability,
    verifier::Origin,
};

/// Maximum number of questions that are asked at once; more wait. The account service limits what it takes from one caller.
const ASKING_MAX: usize = 64;

/// A trusted account service.
pub(super) struct Issuer {
    id: String,
    client: Arc<AccountClient>,
    clock: Arc<dyn Clock>,
    /// Our own token there; none for a component that has none.
    component: Option<Arc<ComponentToken>>,
    keys: PublicKeys,
    /// One permit per question that is being asked.
    asking: Semaphore,
    pub(super) reachability: Reachability,
}

impl Issuer {
    pub(super) fn new(
        id: &str,
        client: Arc<AccountClient>,
        component: Option<Arc<ComponentToken>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let keys = PublicKeys::new(id, Arc::clone(&client), Arc::clone(&clock));
        let asking = Semaphore::new(ASKING_MAX);
        Self { id: id.to_owned(), client, clock, component, keys, asking, reachability: Reachability::default() }
    }

    /// The keys for a token that was signed with the key `key_id`.
    pub(super) async fn keys(&self, key_id: &str) -> Result<CurrentKeys, AuthError> {
        self.keys.with(key_id).await
    }

    /// Whether a token was signed with a key that the account service had withdrawn when it last answered.
    pub(super) fn has_withdrawn_key_of(&self, token: &Secret) -> bool {
        Origin::of(token.expose()).is_ok_and(|origin| self.keys.has_dropped(&origin.key_id))
    }

    /// The claims of a token without the rights to `app_id` that its bearer lost; none if it was revoked.
    pub(super) async fn current_claims(
        &self,
        app_id: &AppId,
        token: &Secret,
        mut claims: Claims,
    ) -> Result<Option<Claims>, AuthError> {
        let _permit = self.asking.acquire().await;
        let response = self.client.rights(&Credential::Token(token.clone()), app_id).await;
        let remaining = match response {
            Ok(rights) => rights,
            Err(error) => match error.kind() {
                Kind::Unauthenticated => return Ok(self.answered(None)),
                Kind::Denied | Kind::NotFound => Vec::new(),
                _ => return Err(self.silent(error)),
            },
        };
        if let Some(rights) = claims.apps.get_mut(app_id) {
            rights.retain(|right: &ApplicationRight| remaining.contains(right));
        }
        Ok(self.answered(Some(claims)))
    }

    /// Exchanges an access key for its claims; none if the account service refuses the key.
    pub(super) async fn exchange(&self, app_id: &AppId, key: &AccessKey) -> Result<Option<Claims>, AuthError> {
        let _permit = self.asking.acquire().await;
        let response = match &self.component {
            Some(component) => self.exchange_as(component, app_id, key).await,
            None => self.client.exchange_key(app_id, key).await,
        };
        match response {
            Ok(response) => self.verify_new(&response.access_token).await.map(|claims| self.answered(Some(claims))),
            Err(error) if is_about_us(&error) => Err(AuthError::NotAccepted { issuer: self.id.clone() }),
            Err(error) => match error.kind() {
                Kind::Invalid | Kind::Unauthenticated | Kind::NotFound => Ok(self.answered(None)),
                _ => Err(self.silent(error)),
            },
        }
    }

    /// Exchanges a key as this component; with a new token if the account service refuses the current one.
    async fn exchange_as(
        &self,
        component: &ComponentToken,
        app_id: &AppId,
        key: &AccessKey,
    ) -> client::Result<TokenResponse> {
        let Some(token) = component.current() else { return self.client.exchange_key(app_id, key).await };
        let response = self.client.exchange_key_as(&token, app_id, key).await;
        if !response.as_ref().is_err_and(is_about_us) {
            component.note_accepted(&token);
            return response;
        }
        let Some(newer) = component.replace_refused(&token).await else { return response };
        let response = self.client.exchange_key_as(&newer, app_id, key).await;
        match &response {
            Err(error) if is_about_us(error) => component.note_refused(&newer),
            _ => component.note_accepted(&newer),
        }
        response
    }

    /// The claims of a token that the account service has just sent.
    ///
    /// If they cannot be read, neither the caller nor the key is to blame.
    async fn verify_new(&self, token: &Secret) -> Result<Claims, AuthError> {
        let reason = |reason| AuthError::Issued { issuer: self.id.clone(), reason };
        let origin = Origin::of(token.expose()).map_err(reason)?;
        match self.keys.with_new(&origin.key_id).await {
            Ok(keys) => keys.verifier.verify_vouched(token.expose(), self.clock.now()).map_err(reason),
            Err(AuthError::Token(error)) => Err(reason(error)),
            Err(error) => Err(error),
        }
    }

    fn answered<T>(&self, response: T) -> T {
        if self.reachability.answered() {
            tracing::info!(issuer = self.id, "the account service answers again");
        }
        response
    }

    /// Notes that there was no response about a credential, and why.
    pub(super) fn silent(&self, error: client::Error) -> AuthError {
        if self.reachability.silent(self.clock.now()) {
            tracing::warn!(
                issuer = self.id,
                %error,
                "the account service cannot be asked: what it confirmed goes on for the grace time, the rest is refused"
            );
        }
        AuthError::Unavailable { issuer: self.id.clone(), source: Arc::new(error) }
    }

    /// The same when it took too long.
    pub(super) fn timed_out(&self) -> AuthError {
        self.silent(client::Error::Timeout { service: "account service", address: self.id.clone() })
    }

    /// Renews our own token when it is due, or when its key is no longer among the public keys.
    pub(super) async fn keep_component_accepted(&self) {
        let Some(component) = &self.component else { return };
        component.renew_if_due().await;
        let Some(token) = component.current() else { return };
        let Ok(origin) = Origin::of(token.expose()) else { return };
        let verified = self
            .keys(&origin.key_id)
            .await
            .and_then(|keys| Ok(keys.verifier.verify_vouched(token.expose(), self.clock.now())?));
        if let Err(AuthError::Token(TokenError::Key | TokenError::Signature | TokenError::Expired)) = verified {
            component.replace_refused(&token).await;
        }
    }
}

/// Whether the account service refused our own credential, rather than the access key that we sent.
fn is_about_us(error: &client::Error) -> bool {
    matches!(error, client::Error::NotAccepted { .. } | client::Error::Refused { kind: Kind::Denied, .. })
}
