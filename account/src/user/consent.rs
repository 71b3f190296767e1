//! What a user allowed OAuth clients to do.

use serde::{Deserialize, Serialize};
use types::{ClientId, Scope, Timestamp};

use super::UserRecord;
use crate::{Error, Result};

/// Maximum number of clients that a user can authorize.
const CONSENTS_MAX: usize = 100;
/// Maximum number of scopes that are remembered for a client; the oldest are forgotten.
const SCOPES_MAX: usize = 50;

/// A user's consent to a client, stored in the user's record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Consent {
    /// General scopes and entities; empty if the user revoked it.
    pub(crate) scope: Vec<Scope>,
    /// When the user consented first.
    pub(crate) given: Timestamp,
    /// How often the user revoked it.
    pub(crate) epoch: u32,
    /// Access tokens from before this Unix time in seconds are invalid.
    pub(crate) not_before_s: u64,
}

/// Identifies the state of a consent. Codes and grants are valid only while it is unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConsentVersion {
    not_before_s: u64,
    epoch: u32,
}

impl UserRecord {
    /// Whether the user consented to all of these scopes.
    pub(crate) fn consents_to(&self, client: &ClientId, scope: &[Scope]) -> bool {
        let held = |scope: &Scope| {
            self.consents
                .get(client)
                .is_some_and(|consent| consent.scope.contains(scope) || consent.scope.contains(&scope.general()))
        };
        !scope.is_empty() && scope.iter().all(held)
    }

    pub(crate) fn has_consent(&self, client: &ClientId) -> bool {
        self.consents.get(client).is_some_and(|consent| !consent.scope.is_empty())
    }

    pub(crate) fn consent_version(&self, client: &ClientId) -> ConsentVersion {
        let epoch = self.consents.get(client).map_or(0, |consent| consent.epoch);
        ConsentVersion { not_before_s: self.not_before_s, epoch }
    }

    pub(crate) fn consent(&mut self, client: &ClientId, scope: &[Scope], now: Timestamp) -> Result<()> {
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
