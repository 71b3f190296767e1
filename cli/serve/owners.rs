//! To whom applications belong: the account service says it to the handler's own token.

use std::sync::Arc;

use async_trait::async_trait;
use client::account::AccountClient;
use server::{auth::ComponentToken, ledger::OwnerSource, status::ErrorChain};
use types::{AppId, Credential, UserId};

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
}

#[async_trait]
impl OwnerSource for AccountOwners {
    /// None without a token, or if the account service does not say; then the application is charged itself.
    async fn owner_of(&self, app_id: &AppId) -> Option<UserId> {
        let token = self.token.current()?;
        match self.client.application_owner(&Credential::Token(token), app_id).await {
            Ok(owner) => Some(owner.id),
            Err(error) => {
                tracing::debug!(%app_id, error = %ErrorChain(&error), "the owner is not known");
                None
            }
        }
    }
}
