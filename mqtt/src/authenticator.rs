//! Who may connect: the question that the broker asks, and how the account service answers it.

use async_trait::async_trait;
use server::auth::Authenticator;
use types::{AppId, Claims, Credential, Kind, Kinded};

/// Checks the credentials of applications.
#[async_trait]
pub trait Gate: Send + Sync {
    /// What `credential` may do with `app_id`; for a token that may be nothing at all.
    async fn claims(&self, app_id: &AppId, credential: &Credential) -> Result<Claims, Refusal>;
}

/// Why a credential was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is wrong, has ended or was revoked.
    Invalid,
    /// It cannot be checked now: try again.
    Unavailable,
}

#[async_trait]
impl Gate for Authenticator {
    async fn claims(&self, app_id: &AppId, credential: &Credential) -> Result<Claims, Refusal> {
        self.authenticate_for(app_id, Some(credential.clone())).await.map_err(|error| match error.kind() {
            Kind::Unauthenticated | Kind::Denied | Kind::NotFound | Kind::Invalid => Refusal::Invalid,
            _ => {
                tracing::warn!(%app_id, %error, "a credential cannot be checked");
                Refusal::Unavailable
            }
        })
    }
}
