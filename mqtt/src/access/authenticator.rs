//! Checks the credentials of MQTT clients.

use std::net::IpAddr;

use async_trait::async_trait;
use server::{
    auth::{Caller, Purpose},
    ledger::Owner,
    status::ErrorChain,
    usage::Usage,
};
use types::{AppId, Claims, Credential, Kind, Kinded};

/// Checks an application's credentials.
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// Returns the rights of `credential`. A valid token may hold none on `app_id`.
    ///
    /// Checks of credentials that are not known yet take turns by the address that they come `from`: anybody can name
    /// the application of somebody else.
    async fn authenticate(
        &self,
        app_id: &AppId,
        credential: &Credential,
        from: Option<IpAddr>,
    ) -> Result<Claims, Refusal>;
}

/// Reasons for refusing a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The credential is wrong, expired or revoked.
    Invalid,
    /// The credential cannot be checked now, for this reason; the client may retry.
    Unavailable(String),
}

#[async_trait]
impl Authenticator for server::auth::Authenticator {
    async fn authenticate(
        &self,
        app_id: &AppId,
        credential: &Credential,
        from: Option<IpAddr>,
    ) -> Result<Claims, Refusal> {
        let usage = from.map_or_else(Usage::default, |address| Usage::of_owner(Owner::of_address(address)));
        let caller = Caller { credential: Some(credential.clone()), usage };
        self.authenticate_for(app_id, caller, Purpose::Read).await.map_err(|error| {
            match error.kind() {
                Kind::Unauthenticated | Kind::Denied | Kind::NotFound | Kind::Invalid => Refusal::Invalid,
                _ => {
                    // The outage itself has been logged once; strangers must not fill the log during it.
                    tracing::debug!(%app_id, error = %ErrorChain(&error), "cannot check an MQTT client's credential");
                    Refusal::Unavailable(error.to_string())
                }
            }
        })
    }
}
