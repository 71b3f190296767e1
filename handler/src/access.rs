//! Who may do what to an application: asked once per operation, before anything is looked up.

use std::sync::Arc;

use server::auth::Authenticator;
use types::{AppId, ApplicationRight, Claims, Credential};

use crate::Error;

/// Decides whether a caller may do something.
#[derive(Clone)]
pub struct Access {
    authenticator: Arc<Authenticator>,
}

impl Access {
    /// Believes what `authenticator` says about callers.
    pub fn new(authenticator: Arc<Authenticator>) -> Self {
        Self { authenticator }
    }

    /// Lets a caller pass who holds one of `rights`; [`Error::Denied`] otherwise.
    ///
    /// The answer does not depend on whether the application exists, so that a stranger learns nothing from it.
    pub async fn allow(
        &self,
        caller: Option<Credential>,
        app_id: &AppId,
        rights: &[ApplicationRight],
    ) -> Result<Claims, Error> {
        let claims = self.authenticator.authenticate_for(app_id, caller).await?;
        if rights.iter().any(|right| claims.allows(app_id, *right)) {
            return Ok(claims);
        }
        let right = rights.iter().map(|right| right.as_str()).collect::<Vec<_>>().join("` or `");
        Err(Error::Denied { right, app_id: app_id.clone() })
    }
}
