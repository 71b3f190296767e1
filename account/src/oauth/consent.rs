//! Consent: giving it to clients, checking it and revoking it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use types::{ClientId, Scope, Timestamp, UserId};

use super::client::Client;
use crate::{
    Account, Error, Result,
    user::{
        UserRecord,
        consent::{ClientRevision, Consent},
        next_second, no_user,
    },
};

/// A client that a user has authorized.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct AuthorizedClient {
    /// The client's id.
    pub(crate) name: ClientId,
    /// The scopes that it asks for.
    pub(crate) scope: Vec<Scope>,
    /// When the user authorized it first.
    pub(crate) given: Timestamp,
}

impl Account {
    /// The clients that a user has authorized, in order of their ids.
    pub(crate) async fn authorized_clients(&self, user_id: &UserId) -> Result<Vec<AuthorizedClient>> {
        let consents: BTreeMap<_, _> = self.user(user_id).await?.ok_or_else(|| no_user(user_id))?.consents;
        let given = consents.into_iter().filter(|(_, consent)| !consent.scope.is_empty());
        Ok(given.map(|(name, Consent { scope, given, .. })| AuthorizedClient { name, scope, given }).collect())
    }

    /// Revokes a user's consent, and with it the client's codes, grants and tokens.
    pub(crate) async fn revoke_client(&self, user_id: &UserId, client: &ClientId) -> Result<()> {
        let now = self.clock.now();
        let take_back = |user: &mut UserRecord| {
            let consent = user.consents.get_mut(client).filter(|consent| !consent.scope.is_empty());
            let missing = || Error::NotFound { what: "authorized client", id: client.to_string() };
            consent.ok_or_else(missing)?.end(now);
            Ok(())
        };
        let change = self.audit.change("client revoked", user_id, client)?;
        change.run(self.change_user(user_id, take_back)).await.map(drop)
    }

    /// Records a user's consent. Returns the user as stored afterwards.
    pub(super) async fn give_consent(
        &self,
        user: &UserRecord,
        client: ClientRevision<'_>,
        scope: &[Scope],
    ) -> Result<UserRecord> {
        if user.consents_to(client, scope) {
            return Ok(user.clone());
        }
        let change = self.audit.change("consent given", &user.id, client.id)?;
        let now = self.clock.now();
        change.run(self.change_user(&user.id, |user| user.consent(client, scope, now))).await
    }

    /// Checks that the user consented to these scopes, unless it is a first-party client.
    ///
    /// A client can exchange a token only for scopes that the user consented to, singly or by a general scope.
    pub(crate) async fn check_consent(
        &self,
        user: &UserRecord,
        client: Option<&ClientId>,
        scope: &[Scope],
    ) -> Result<()> {
        let missing = |scope: &Scope| Err(Error::NoConsent(scope.clone()));
        let Some(client) = client else { return scope.iter().try_for_each(missing) };
        let found = self.client_named(client.as_str()).await?;
        let allows = |scope: &Scope| {
            let consents = |client: &Client| user.consents_to(client.revision(), std::slice::from_ref(scope));
            found.as_ref().is_some_and(|client| client.first_party || consents(client))
        };
        scope.iter().find(|scope| !allows(scope)).map_or(Ok(()), missing)
    }

    /// Revokes the access tokens that a client has for a user. Its other grants can get new ones.
    pub(super) async fn revoke_access_tokens(&self, user_id: &UserId, client: &ClientId) -> Result<()> {
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
