//! Consents of a user to OAuth clients.

use serde::{Deserialize, Serialize};
use types::{ClientId, Scope, Timestamp};

use super::{UserRecord, next_second};
use crate::{Error, Result};

/// Maximum number of clients that a user can authorize.
const CONSENTS_MAX: usize = 100;
/// Maximum number of scopes that are remembered for a client; the oldest are forgotten.
const SCOPES_MAX: usize = 50;

/// A user's consent to a client, stored in the user's record.
///
/// It counts only while the client is what the user was shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Consent {
    /// General scopes and entities; empty if the user revoked it.
    pub(crate) scope: Vec<Scope>,
    /// Time of the first consent.
    pub(crate) given: Timestamp,
    /// Number of times that it ended: because the user revoked it, or consented to a changed client.
    pub(crate) epoch: u32,
    /// Access tokens from before this Unix time in seconds are invalid.
    pub(crate) not_before_s: u64,
    /// The revision of the client that the user was shown.
    #[serde(default)]
    pub(crate) revision: u32,
}

/// A client in the state in which users are shown it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientRevision<'a> {
    pub(crate) id: &'a ClientId,
    pub(crate) number: u32,
}

/// Identifies the state of a consent. Codes and grants are valid only while it is unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConsentVersion {
    not_before_s: u64,
    epoch: u32,
}

impl Consent {
    /// Ends it, and with it all codes, grants and tokens that it allowed.
    pub(crate) fn end(&mut self, now: Timestamp) {
        self.scope.clear();
        self.epoch = self.epoch.wrapping_add(1);
        self.not_before_s = next_second(self.not_before_s, now);
    }

    fn covers(&self, scope: &Scope) -> bool {
        self.scope.contains(scope) || self.scope.contains(&scope.general())
    }
}

impl UserRecord {
    /// Returns true if the user consented to all of these scopes for the client as it is now.
    pub(crate) fn consents_to(&self, client: ClientRevision<'_>, scope: &[Scope]) -> bool {
        let consent = self.consent_to(client);
        !scope.is_empty() && consent.is_some_and(|consent| scope.iter().all(|scope| consent.covers(scope)))
    }

    /// The user's consent to the client as it is now.
    pub(crate) fn consent_to(&self, client: ClientRevision<'_>) -> Option<&Consent> {
        let consent = self.consents.get(client.id)?;
        (!consent.scope.is_empty() && consent.revision == client.number).then_some(consent)
    }

    /// Returns true if the user consented to the client and did not revoke it, whatever the client was then.
    pub(crate) fn authorized(&self, client: &ClientId) -> bool {
        self.consents.get(client).is_some_and(|consent| !consent.scope.is_empty())
    }

    pub(crate) fn consent_version(&self, client: &ClientId) -> ConsentVersion {
        let epoch = self.consents.get(client).map_or(0, |consent| consent.epoch);
        ConsentVersion { not_before_s: self.not_before_s, epoch }
    }

    /// Adds scopes to the user's consent. A consent to an earlier revision of the client ends first.
    pub(crate) fn consent(&mut self, client: ClientRevision<'_>, scope: &[Scope], now: Timestamp) -> Result<()> {
        self.make_room_for(client.id)?;
        let fresh = Consent { scope: Vec::new(), given: now, epoch: 0, not_before_s: 0, revision: client.number };
        let consent = self.consents.entry(client.id.clone()).or_insert(fresh);
        if consent.revision != client.number {
            consent.end(now);
            consent.revision = client.number;
        }
        if consent.scope.is_empty() {
            consent.given = now;
        }
        for scope in scope {
            if !consent.covers(scope) {
                consent.scope.push(scope.clone());
            }
        }
        let over = consent.scope.len().saturating_sub(SCOPES_MAX);
        consent.scope.drain(..over);
        Ok(())
    }

    /// Forgets revoked consents if there are too many.
    fn make_room_for(&mut self, client: &ClientId) -> Result<()> {
        if self.consents.contains_key(client) || self.consents.len() < CONSENTS_MAX {
            return Ok(());
        }
        self.consents.retain(|_, consent| !consent.scope.is_empty());
        match self.consents.len() < CONSENTS_MAX {
            true => Ok(()),
            false => Err(Error::Full { what: "client", count_max: CONSENTS_MAX }),
        }
    }
}
