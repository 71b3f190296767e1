//! What users allowed clients to do, until they revoke it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use types::{ClientId, Scope, Timestamp, UserId};

use crate::{
    Account, Error, Result, audit,
    user::{UserRecord, next_second, no_user},
};

/// Maximum number of clients that a user allows to act.
const CONSENTS_MAX: usize = 100;
/// Maximum number of scopes stored per client; the oldest are asked for again.
const SCOPES_MAX: usize = 50;

/// A user's consent to a client, stored with the user.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Consent {
    /// General scopes and scopes of entities; empty if revoked.
    pub(crate) scope: Vec<Scope>,
    /// When the user first consented.
    pub(crate) given: Timestamp,
    /// How often it was revoked.
    epoch: u32,
    /// Access tokens issued before this second since 1970 are invalid.
    pub(crate) not_before_s: u64,
}

/// Codes and grants are valid while this is unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Anchor {
    not_before_s: u64,
    epoch: u32,
}

/// A client with the user's consent.
#[derive(Clone, Debug, Serialize)]
pub struct AuthorizedClient {
    /// The id of the client.
    pub name: ClientId,
    /// What it may do.
    pub scope: Vec<Scope>,
    /// When the user first consented.
    pub given: Timestamp,
}

impl UserRecord {
    /// Whether the user allows a client all of these scopes.
    pub(super) fn consents_to(&self, client: &ClientId, scope: &[Scope]) -> bool {
        let held = |scope: &Scope| {
            self.consents
                .get(client)
                .is_some_and(|consent| consent.scope.contains(scope) || consent.scope.contains(&scope.general()))
        };
        !scope.is_empty() && scope.iter().all(held)
    }

    /// Whether the user allows a client anything.
    pub(crate) fn lets_act(&self, client: &ClientId) -> bool {
        self.consents.get(client).is_some_and(|consent| !consent.scope.is_empty())
    }

    /// The current anchor of codes and grants of this client.
    pub(super) fn anchor(&self, client: &ClientId) -> Anchor {
        let epoch = self.consents.get(client).map_or(0, |consent| consent.epoch);
        Anchor { not_before_s: self.not_before_s, epoch }
    }

    fn consent(&mut self, client: &ClientId, scope: &[Scope], now: Timestamp) -> Result<()> {
        if !self.consents.contains_key(client) && self.consents.len() >= CONSENTS_MAX {
            self.consents.retain(|_, consent| !consent.scope.is_empty());
        }
        if self.consents.len() >= CONSENTS_MAX && !self.consents.contains_key(client) {
            return Err(Error::Full { what: "client", count_max: CONSENTS_MAX });
        }
        let fresh = Consent { scope: Vec::new(), given: now, epoch: 0, not_before_s: 0 };
        let consent = self.consents.entry(client.clone()).or_insert(fresh);
        if consent.scope.is_empty() {
            consent.given = now;
        }
        for scope in scope {
            if !consent.scope.contains(scope) && !consent.scope.contains(&scope.general()) {
                consent.scope.push(scope.clone());
            }
        }
        let over = consent.scope.len().saturating_sub(SCOPES_MAX);
        consent.scope.drain(..over);
        Ok(())
    }
}

impl Account {
    /// Lists the clients that a user allows to act, ordered by id.
    pub async fn authorized_clients(&self, user_id: &UserId) -> Result<Vec<AuthorizedClient>> {
        let consents: BTreeMap<_, _> = self.user(user_id).await?.ok_or_else(|| no_user(user_id))?.consents;
        let given = consents.into_iter().filter(|(_, consent)| !consent.scope.is_empty());
        Ok(given.map(|(name, Consent { scope, given, .. })| AuthorizedClient { name, scope, given }).collect())
    }

    /// Revokes a consent, and with it the client's codes, grants and tokens for this user.
    pub async fn revoke_client(&self, user_id: &UserId, client: &ClientId) -> Result<()> {
        let now = self.clock.now();
        let take_back = |user: &mut UserRecord| {
            let consent = user.consents.get_mut(client).filter(|consent| !consent.scope.is_empty());
            let missing = || Error::NotFound { what: "authorized client", id: client.to_string() };
            let consent = consent.ok_or_else(missing)?;
            consent.scope.clear();
            consent.epoch = consent.epoch.wrapping_add(1);
            consent.not_before_s = next_second(consent.not_before_s, now);
            Ok(())
        };
        self.change_user(user_id, take_back).await?;
        audit::event("client revoked", user_id, client);
        Ok(())
    }

    /// Stores a consent; returns the updated user.
    pub(super) async fn give_consent(
        &self,
        user: &UserRecord,
        client: &ClientId,
        scope: &[Scope],
    ) -> Result<UserRecord> {
        if user.consents_to(client, scope) {
            return Ok(user.clone());
        }
        let now = self.clock.now();
        let given = self.change_user(&user.id, |user| user.consent(client, scope, now)).await?;
        audit::event("consent given", &user.id, client);
        Ok(given)
    }

    /// Rejects scopes that the user did not allow the client. First-party clients need no consent.
    ///
    /// A token for one entity can only be exchanged for one for another if the user consented to both, or to all.
    pub(crate) async fn check_consent(
        &self,
        user: &UserRecord,
        client: Option<&ClientId>,
        scope: &[Scope],
    ) -> Result<()> {
        let missing = |scope: &Scope| Err(Error::NoConsent(scope.clone()));
        let Some(client) = client else { return scope.iter().try_for_each(missing) };
        let mut strange = scope.iter().filter(|scope| !user.consents_to(client, std::slice::from_ref(*scope)));
        let Some(strange) = strange.next() else { return Ok(()) };
        let found = self.client_named(client.as_str()).await?;
        if found.is_some_and(|client| client.first_party) { Ok(()) } else { missing(strange) }
    }

    /// Ends the access tokens that a client has for a user; its other grants can get new ones.
    pub(super) async fn end_tokens(&self, user_id: &UserId, client: &ClientId) -> Result<()> {
        let now = self.clock.now();
        let end = |user: &mut UserRecord| {
            if let Some(consent) = user.consents.get_mut(client) {
                consent.not_before_s = next_second(consent.not_before_s, now);
            }
            Ok(())
        };
        self.change_user(user_id, end).await.map(drop)
    }
}
