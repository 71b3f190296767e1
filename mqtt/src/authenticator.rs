//! Checks the credentials of MQTT clients.

use async_trait::async_trait;
use server::auth::Purpose;
use server::status::ErrorChain;
use types::{AppId, Claims, Credential, Kind, Kinded};

/// Checks an application's credentials.
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// Returns the rights of `credential`. A valid token may hold none on `app_id`.
    async fn authenticate(&self, app_id: &AppId, credential: &Credential) -> Result<Claims, Refusal>;
}

/// Why a credential was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The credential is wrong, expired or revoked.
    Invalid,
    /// The credential cannot be checked now, and why; the client may retry.
    Unavailable(String),
}

#[async_trait]
impl Authenticator for server::auth::Authenticator {
    async fn authenticate(&self, app_id: &AppId, credential: &Credential) -> Result<Claims, Refusal> {
        self.authenticate_for(app_id, Some(credential.clone()), Purpose::Read).await.map_err(|error| {
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
