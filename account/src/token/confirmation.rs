//! Checks of credentials for services in the same process. Others get the same answers over HTTP.

use std::fmt::Display;

use types::{
    AccessKey, AppId, ApplicationRight, Claims, Credential, GatewayId, GatewayRight, Kind, Kinded, Scope, Secret,
};

use crate::{
    Account, Error, Result,
    entity::{access::Caller, gateway::Gateway},
    metrics,
};

impl Account {
    /// The rights to an application that a token still has. A refusal goes to the audit log.
    pub async fn application_rights(&self, token: &Secret, app_id: &AppId) -> Result<Vec<ApplicationRight>> {
        let access = async { self.access_to_read(&self.bearer(token).await?, app_id).await };
        let access =
            access.await.inspect_err(|error| self.note_refused("token", &Scope::App(app_id.clone()), error))?;
        Ok(access.rights.into_iter().collect())
    }

    /// The rights to a gateway that a token still has. A refusal goes to the audit log.
    pub async fn gateway_rights(&self, token: &Secret, gateway_id: &GatewayId) -> Result<Vec<GatewayRight>> {
        let access = async { self.access_with_key::<Gateway>(&self.bearer(token).await?, gateway_id).await };
        let scope = Scope::Gateway(gateway_id.clone());
        let access = access.await.inspect_err(|error| self.note_refused("token", &scope, error))?;
        Ok(access.rights.into_iter().collect())
    }

    /// The claims of the token that an access key could be exchanged for. A refusal goes to the audit log.
    pub async fn key_claims(&self, app_id: &AppId, key: &AccessKey) -> Result<Claims> {
        self.claims_of_key(app_id, key).await.inspect_err(|error| {
            metrics::refused("access_key");
            self.note_refused("access key", &Scope::App(app_id.clone()), error);
        })
    }

    /// Returns true if a token counts, and false if it does not, or no longer.
    pub async fn accepts_token(&self, token: &Secret) -> Result<bool> {
        match self.bearer(token).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == Kind::Unauthenticated => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn bearer(&self, token: &Secret) -> Result<Caller> {
        // As every request does.
        self.reload_signing_keys().await;
        self.caller(Credential::Token(token.clone())).await
    }

    /// All refusals are counted together: their callers choose the entities, which need not exist.
    fn note_refused(&self, credential: &'static str, scope: &Scope, error: &Error) {
        if matches!(error.kind(), Kind::Unauthenticated | Kind::Denied) {
            self.audit.note_of("this process", "credential refused", &credential as &dyn Display, scope);
        }
    }
}
