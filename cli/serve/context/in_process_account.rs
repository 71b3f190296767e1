//! The account service of this process, as its other services ask it.

use account::Account;
use async_trait::async_trait;
use server::{auth::LocalAccount, status::ErrorChain};
use types::{AccessKey, AppId, ApplicationRight, Claims, GatewayId, GatewayRight, Kind, Kinded, Secret};

/// Answers without HTTP.
pub(super) struct InProcessAccount(pub(super) Account);

#[async_trait]
impl LocalAccount for InProcessAccount {
    async fn application_rights(&self, token: &Secret, app_id: &AppId) -> client::Result<Vec<ApplicationRight>> {
        self.0.application_rights(token, app_id).await.map_err(|error| refused(&error))
    }

    async fn gateway_rights(&self, token: &Secret, gateway_id: &GatewayId) -> client::Result<Vec<GatewayRight>> {
        self.0.gateway_rights(token, gateway_id).await.map_err(|error| refused(&error))
    }

    async fn key_claims(&self, app_id: &AppId, key: &AccessKey) -> client::Result<Claims> {
        self.0.key_claims(app_id, key).await.map_err(|error| refused(&error))
    }
}

/// The error that a client of the account service would get, with all causes: it goes to the log only.
fn refused(error: &account::Error) -> client::Error {
    let message = ErrorChain(error).to_string();
    if error.kind() == Kind::Internal {
        tracing::error!(error = message, "cannot check a credential: internal error");
    }
    client::Error::Refused { kind: error.kind(), message, retry_after: None }
}
