//! Entities that a credential has rights to: applications and gateways.

use types::{AppId, Claims, Credential, GatewayId};

use super::AuthError;
use crate::ledger::Owner;

/// An entity that a credential has rights to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Entity {
    Application(AppId),
    Gateway(GatewayId),
}

impl Entity {
    /// Returns the owner charged for a question about the entity that comes without a request.
    pub(super) fn owner(&self) -> Owner {
        match self {
            Self::Application(app_id) => Owner::from(app_id),
            Self::Gateway(gateway_id) => Owner::Gateway(gateway_id.as_str().into()),
        }
    }

    /// Returns true if these claims name the entity, as far as the token says.
    pub(super) fn is_in(&self, claims: &Claims) -> bool {
        match self {
            Self::Application(app_id) => claims.apps.contains_key(app_id),
            Self::Gateway(gateway_id) => claims.gateways.contains_key(gateway_id),
        }
    }

    /// Returns true if these claims have any right to the entity.
    pub(super) fn has_rights_in(&self, claims: &Claims) -> bool {
        match self {
            Self::Application(app_id) => claims.apps.get(app_id).is_some_and(|rights| !rights.is_empty()),
            Self::Gateway(gateway_id) => claims.gateways.get(gateway_id).is_some_and(|rights| !rights.is_empty()),
        }
    }

    /// The error for a credential that the account service refused.
    pub(super) fn refusal(&self, credential: &Credential) -> AuthError {
        match (self, credential) {
            (_, Credential::Token(_)) => AuthError::Revoked,
            (Self::Application(app_id), Credential::Key(_)) => AuthError::Key { app_id: app_id.clone() },
            (Self::Gateway(_), Credential::Key(_)) => AuthError::KeyWithoutApplication,
        }
    }
}
