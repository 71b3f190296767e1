//! A trusted account service, and its responses about tokens and access keys.

mod reachability;

use std::{sync::Arc, time::Duration};

use api::rest::account::TokenResponse;
use client::account::AccountClient;
use types::{AccessKey, AppId, Claims, Clock, Credential, Kind, Kinded, Secret, Timestamp};

use self::reachability::Reachability;
use super::{
    AuthError, ComponentToken, LocalAccount, TokenError,
    entity::Entity,
    public_keys::{self, PublicKeys},
    rule::{Before, Now},
    verifier::Origin,
};
use crate::{
    error::status::ErrorChain,
    ledger::{Budget, Limits, Owner, OwnerTurn, Resource, Turns},
};

/// Maximum number of questions asked at once. Others wait, and owners take turns, so that wrong keys from one address
/// delay nobody else. The account service limits what it takes from one caller.
const ASKING: Limits = Limits { total: 64, owner_max: 48, owner_min: 1 };

/// A trusted account service.
pub(super) struct Issuer {
    id: String,
    client: Arc<AccountClient>,
    /// The account service itself, if it runs in this process.
    local: Option<Arc<dyn LocalAccount>>,
    clock: Arc<dyn Clock>,
    /// Our own token there; none for a component that has none.
    component: Option<Arc<ComponentToken>>,
    keys: Arc<PublicKeys>,
    /// One turn per question that is being asked.
    asking: Arc<Turns>,
    pub(super) reachability: Reachability,
}

impl Issuer {
    pub(super) fn new(
        id: &str,
        (client, local): (AccountClient, Option<Arc<dyn LocalAccount>>),
        component: Option<Arc<ComponentToken>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let client = Arc::new(client);
        let keys = Arc::new(PublicKeys::new(id, Arc::clone(&client), Arc::clone(&clock)));
        let asking = Turns::new(Arc::new(Budget::new(Resource::Questions, ASKING)));
        Self { id: id.to_owned(), client, local, clock, component, keys, asking, reachability: Reachability::default() }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The claims of a token that is valid by our clock, and whether its key is confirmed to be in use: at most this
    /// long ago, or else how long ago.
    pub(super) async fn claims(&self, token: &Secret, age_max: Duration) -> Result<(Claims, (Now, Before)), AuthError> {
        let keys = self.keys.with(&Origin::of(token.expose())?.key_id, age_max).await?;
        Ok((keys.verifier.verify(token.expose(), self.clock.now())?, keys.confirmed))
    }

    /// The claims of a token that may be too early by our clock.
    pub(super) async fn vouched_claims(&self, token: &Secret) -> Result<Claims, AuthError> {
        let keys = self.keys.with(&Origin::of(token.expose())?.key_id, public_keys::AGE_MAX).await?;
        Ok(keys.verifier.verify_vouched(token.expose(), self.clock.now())?)
    }

    /// Returns true if a token was signed with a key that the account service had withdrawn when it last answered.
    pub(super) fn has_withdrawn_key_of(&self, token: &Secret) -> bool {
        Origin::of(token.expose()).is_ok_and(|origin| self.keys.has_dropped(&origin.key_id))
    }

    /// The claims of a token without the rights that its bearer lost; `None` if it was revoked.
    pub(super) async fn current_claims(
        &self,
        entity: &Entity,
        token: &Secret,
        mut claims: Claims,
        owner: &Owner,
    ) -> Result<Option<Claims>, AuthError> {
        let _turn = self.turn(owner).await;
        let credential = || Credential::Token(token.clone());
        let is_accepted = match entity {
            Entity::Application(app_id) => {
                let remaining = match &self.local {
                    Some(local) => local.application_rights(token, app_id).await,
                    None => self.client.rights(&credential(), app_id).await,
                };
                self.retain(remaining, claims.apps.get_mut(app_id))?
            }
            Entity::Gateway(gateway_id) => {
                let remaining = match &self.local {
                    Some(local) => local.gateway_rights(token, gateway_id).await,
                    None => self.client.rights(&credential(), gateway_id).await,
                };
                self.retain(remaining, claims.gateways.get_mut(gateway_id))?
            }
        };
        Ok(is_accepted.then_some(claims))
    }

    /// Retains the rights that the bearer of a token still has. Returns false if the token was revoked.
    fn retain<R: PartialEq>(
        &self,
        remaining: client::Result<Vec<R>>,
        rights: Option<&mut Vec<R>>,
    ) -> Result<bool, AuthError> {
        let remaining = match remaining {
            Ok(remaining) => remaining,
            Err(error) => match refusal(&error) {
                Some(Kind::Unauthenticated) => return Ok(self.answered(false)),
                Some(Kind::Denied | Kind::NotFound) => Vec::new(),
                _ => return Err(self.silent(error)),
            },
        };
        if let Some(rights) = rights {
            rights.retain(|right| remaining.contains(right));
        }
        Ok(self.answered(true))
    }

    /// The claims of an access key; `None` if the account service refuses the key.
    pub(super) async fn key_claims(
        &self,
        app_id: &AppId,
        key: &AccessKey,
        owner: &Owner,
    ) -> Result<Option<Claims>, AuthError> {
        if let Some(local) = &self.local {
            let _turn = self.turn(owner).await;
            return match local.key_claims(app_id, key).await {
                Ok(claims) => Ok(self.answered(Some(claims))),
                Err(error) if refusal(&error) == Some(Kind::Unauthenticated) => Ok(self.answered(None)),
                Err(error) => Err(self.silent(error)),
            };
        }
        match self.exchange_for_token(app_id, key, owner).await? {
            Some(token) => self.verify_new(&token).await.map(|claims| self.answered(Some(claims))),
            None => Ok(self.answered(None)),
        }
    }

    /// Exchanges an access key for a token; `None` if the account service refuses the key.
    pub(super) async fn exchange_for_token(
        &self,
        app_id: &AppId,
        key: &AccessKey,
        owner: &Owner,
    ) -> Result<Option<Secret>, AuthError> {
        let _turn = self.turn(owner).await;
        let response = match &self.component {
            Some(component) => self.exchange_as(component, app_id, key).await,
            None => self.client.exchange_key(app_id, key).await,
        };
        match response {
            Ok(response) => Ok(Some(response.access_token)),
            Err(error) if is_about_us(&error) => Err(AuthError::NotAccepted { issuer: self.id.clone() }),
            Err(error) => match refusal(&error) {
                Some(Kind::Unauthenticated) => Ok(None),
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
        let token = component.current();
        let response = self.exchange_with(component, token.as_ref(), app_id, key).await;
        let (true, Some(token)) = (response.as_ref().is_err_and(is_about_us), token) else { return response };
        let Some(newer) = component.replace_refused(&token).await else { return response };
        self.exchange_with(component, Some(&newer), app_id, key).await
    }

    /// Exchanges a key, and notes whether the account service accepted this component.
    async fn exchange_with(
        &self,
        component: &ComponentToken,
        token: Option<&Secret>,
        app_id: &AppId,
        key: &AccessKey,
    ) -> client::Result<TokenResponse> {
        let response = match token {
            Some(token) => self.client.exchange_key_as(token, app_id, key).await,
            None => self.client.exchange_key(app_id, key).await,
        };
        match &response {
            Err(error) if is_about_us(error) => component.note_refused(token),
            // Silence says nothing about it.
            Err(error) if refusal(error) != Some(Kind::Unauthenticated) => {}
            Ok(_) | Err(_) => component.note_accepted(token),
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

    async fn turn(&self, owner: &Owner) -> Option<OwnerTurn> {
        self.asking.take(owner).await
    }

    fn answered<T>(&self, response: T) -> T {
        if self.reachability.answered() {
            tracing::info!(issuer = self.id, "the account service answers again");
        }
        response
    }

    /// Notes that there was no response about a credential, and why.
    pub(super) fn silent(&self, error: client::Error) -> AuthError {
        // A limit may concern this question alone.
        if error.kind() != Kind::Exhausted && self.reachability.silent(self.clock.now()) {
            tracing::warn!(
                issuer = self.id,
                error = %ErrorChain(&error),
                "the account service cannot be asked: what it confirmed goes on for the grace time, the rest is refused"
            );
        }
        AuthError::Unavailable { issuer: self.id.clone(), source: Arc::new(error) }
    }

    /// Returns the error for a question that took too long.
    pub(super) fn timed_out(&self) -> AuthError {
        self.silent(client::Error::Timeout { service: "account service", address: self.id.clone() })
    }

    /// Renews our own token when it is due, or when its key is no longer among the public keys.
    pub(super) async fn keep_component_accepted(&self) {
        let Some(component) = &self.component else { return };
        component.renew_if_due().await;
        let Some(token) = component.current() else { return };
        let verified = self.vouched_claims(&token).await;
        if let Err(AuthError::Token(TokenError::Key | TokenError::Signature | TokenError::Expired)) = verified {
            component.replace_refused(&token).await;
        }
    }
}

/// The kind of a refusal, if the account service itself wrote it and not a proxy.
fn refusal(error: &client::Error) -> Option<Kind> {
    match error {
        client::Error::Refused { kind, .. } => Some(*kind),
        client::Error::NotAccepted { .. } => Some(Kind::Unauthenticated),
        _ => None,
    }
}

/// Returns true if the account service refused our own credential, rather than the access key that we sent.
fn is_about_us(error: &client::Error) -> bool {
    matches!(error, client::Error::NotAccepted { .. } | client::Error::Refused { kind: Kind::Denied, .. })
}
