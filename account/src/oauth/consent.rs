//! What users let clients do, which is remembered until they take it back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use types::{ClientId, Scope, Timestamp, UserId};

use crate::{
    Account, Error, Result, audit,
    user::{UserRecord, next_second, no_user},
};

/// The most clients that one user lets do something.
const CONSENTS_MAX: usize = 100;
/// The most scopes of one client that are remembered; the oldest are asked for again.
const SCOPES_MAX: usize = 50;

/// What a user lets a client do, kept with the user.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Consent {
    /// General scopes and those of single things; none when the user took it back.
    pub(crate) scope: Vec<Scope>,
    /// When the user first said so.
    pub(crate) given: Timestamp,
    /// How often it was taken back.
    epoch: u32,
    /// Access tokens from before this second, since 1970, are over.
    pub(crate) not_before_s: u64,
}

/// What codes and grants hang on: they count while it is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Anchor {
    not_before_s: u64,
    epoch: u32,
}

/// A client that a user lets do something.
#[derive(Clone, Debug, Serialize)]
pub struct AuthorizedClient {
    /// The id of the client.
    pub name: ClientId,
    /// What it may do.
    pub scope: Vec<Scope>,
    /// When the user first said so.
    pub given: Timestamp,
}

impl UserRecord {
    /// Whether the user lets a client do all of this.
    pub(super) fn consents_to(&self, client: &ClientId, scope: &[Scope]) -> bool {
        let held = |scope: &Scope| {
            self.consents
                .get(client)
                .is_some_and(|consent| consent.scope.contains(scope) || consent.scope.contains(&scope.general()))
        };
        !scope.is_empty() && scope.iter().all(held)
    }

    /// Whether the user lets a client do anything.
    pub(crate) fn lets_act(&self, client: &ClientId) -> bool {
        self.consents.get(client).is_some_and(|consent| !consent.scope.is_empty())
    }

    /// What codes and grants of this client hang on now.
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
    /// The clients that a user lets do something, in the order of their ids.
    pub async fn authorized_clients(&self, user_id: &UserId) -> Result<Vec<AuthorizedClient>> {
        let consents: BTreeMap<_, _> = self.user(user_id).await?.ok_or_else(|| no_user(user_id))?.consents;
        let given = consents.into_iter().filter(|(_, consent)| !consent.scope.is_empty());
        Ok(given.map(|(name, Consent { scope, given, .. })| AuthorizedClient { name, scope, given }).collect())
    }

    /// Takes back what a client may do: its codes, grants and tokens for this user are over.
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

    /// Remembers what a user lets a client do; gives the user as it is then.
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

    /// Refuses to a client what the user does not let it do; who uses one of the operator's is not asked.
    ///
    /// A token for one thing may become one for another only where the user said so of both, or of the whole sort.
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

    /// Ends the access tokens that a client has for a user; its other grants bring it new ones.
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
