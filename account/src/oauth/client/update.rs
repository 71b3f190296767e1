//! Registered clients: how they are shown and updated.
//!
//! Users and the operator agreed to what a client was when they saw it. So if its owner changes its redirect URI,
//! grants or scopes, the operator must approve it again; and if its redirect URI or description changes, which users
//! are shown, each user must consent again.

use api::rest::account::{self as body, ClientUpdate};
use types::UserId;

use super::{
    Client, ClientStatus, GrantType,
    rules::{check_description, check_scope, check_uri},
};
use crate::{Error, Result};

impl Client {
    /// The client without its secret.
    pub(crate) fn body(&self) -> body::Client {
        body::Client {
            name: self.id.clone(),
            description: self.description.clone(),
            secret: None,
            uri: self.redirect_uris.first().cloned().unwrap_or_default(),
            grants: self.grants.iter().map(|grant| grant.as_str().to_owned()).collect(),
            scope: self.scope.clone(),
            accepted: self.status == ClientStatus::Approved,
            rejected: self.status == ClientStatus::Rejected,
            official: self.first_party,
        }
    }

    /// Returns true if this user registered it and did not delete it.
    pub(crate) fn is_of(&self, user_id: &UserId) -> bool {
        self.owner.as_ref() == Some(user_id) && self.status != ClientStatus::Deleted
    }

    /// Applies an update, and notes who must agree again.
    pub(crate) fn update(&mut self, update: ClientUpdate) -> Result<()> {
        let shown = (self.redirect_uris.clone(), self.description.clone());
        let before = (self.redirect_uris.clone(), self.grants.clone(), self.scope.clone());
        if let Some(description) = update.description {
            check_description(&description)?;
            self.description = description;
        }
        if let Some(uri) = update.uri {
            check_uri(&uri)?;
            self.redirect_uris = vec![uri];
        }
        if let Some(grants) = update.grants {
            self.grants = grants.iter().map(|grant| grant_for_all(grant)).collect::<Result<_>>()?;
        }
        if let Some(scope) = update.scope {
            check_scope(&scope)?;
            self.scope = scope;
        }
        if before != (self.redirect_uris.clone(), self.grants.clone(), self.scope.clone()) {
            self.status = ClientStatus::Undecided;
        }
        if shown != (self.redirect_uris.clone(), self.description.clone()) {
            self.revision = self.revision.wrapping_add(1);
        }
        Ok(())
    }
}

/// The password grant is for first-party clients only.
fn grant_for_all(text: &str) -> Result<GrantType> {
    let must = "must be authorization_code, refresh_token or both";
    let grant = text.parse().ok().filter(|grant| *grant != GrantType::Password);
    grant.ok_or(Error::Invalid { what: "grants", must })
}
