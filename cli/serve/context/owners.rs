//! Owners of applications and gateways: the account service reveals them to the handler's own token.

use std::{fmt::Display, sync::Arc};

use async_trait::async_trait;
use client::account::AccountClient;
use server::{auth::ComponentToken, ledger::OwnerSource, status::ErrorChain};
use types::{AppId, Credential, GatewayId, UserId};

/// Asks the account service, which answers the operator's components only.
pub(super) struct AccountOwners {
    client: AccountClient,
    token: Arc<ComponentToken>,
}

impl AccountOwners {
    pub(super) fn new(client: AccountClient, token: Arc<ComponentToken>) -> Self {
        let named = token.clone();
        Self { client: client.identified_by(move || named.current()), token }
    }

    fn credential(&self) -> Option<Credential> {
        self.token.current().map(Credential::Token)
    }
}

#[async_trait]
impl OwnerSource for AccountOwners {
    /// None without a token, or if the account service does not say; then the application is charged itself.
    async fn owner_of(&self, app_id: &AppId) -> Option<UserId> {
        let owner = self.client.application_owner(&self.credential()?, app_id).await;
        known(app_id, owner.map(|owner| Some(owner.id)))
    }

    async fn owner_of_gateway(&self, gateway_id: &GatewayId) -> Option<UserId> {
        let gateway = self.client.gateway(&self.credential()?, gateway_id).await;
        known(gateway_id, gateway.map(|gateway| gateway.owner.map(|owner| owner.id)))
    }
}

fn known(id: &dyn Display, owner: client::Result<Option<UserId>>) -> Option<UserId> {
    owner.unwrap_or_else(|error| {
        tracing::debug!(%id, error = %ErrorChain(&error), "the owner is not known");
        None
    })
}
