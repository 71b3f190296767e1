//! A question to the account service: what may a credential do with an application or a gateway?

use std::sync::Arc;

use types::{Claims, Credential, Secret};

use crate::{
    auth::{
        AuthError,
        entity::Entity,
        issuer::Issuer,
        memory::{CredentialId, Memory},
    },
    ledger::Owner,
};

/// The claims of a credential, according to the account service; `None` if it refused the credential.
pub(super) type Response = Option<Arc<Claims>>;

/// A credential that there is no recent response about.
#[derive(Clone)]
pub(super) struct Question {
    pub(super) id: CredentialId,
    pub(super) entity: Entity,
    pub(super) credential: Credential,
    /// The owner whose turn the question takes.
    owner: Owner,
}

impl Question {
    /// Without an owner, the turn is that of the entity.
    pub(super) fn new(entity: Entity, credential: Credential, owner: Option<&Owner>) -> Self {
        let owner = owner.cloned().unwrap_or_else(|| entity.owner());
        Self { id: CredentialId::of(&entity, &credential), entity, credential, owner }
    }

    /// Asks the account service, and remembers its response.
    pub(super) async fn ask(&self, issuer: &Issuer, memory: &Memory) -> Result<Response, AuthError> {
        let asked = memory.asking(issuer.now());
        let response = match (&self.credential, &self.entity) {
            (Credential::Token(token), entity) => self.current_claims(issuer, entity, token).await,
            (Credential::Key(key), Entity::Application(app_id)) => issuer.key_claims(app_id, key, &self.owner).await,
            (Credential::Key(_), Entity::Gateway(_)) => Err(AuthError::KeyWithoutApplication),
        };
        let response = response.map(|claims| claims.map(Arc::new));
        match &response {
            Ok(Some(claims)) if self.entity.has_rights_in(claims) => {
                memory.confirm(self.id, &self.entity, Arc::clone(claims), asked);
            }
            // Without any right, it is as good as refused.
            Ok(_) => memory.refuse(self.id, &self.entity, asked),
            // The token has expired, or its key was withdrawn: whoever confirmed it would not do so again.
            Err(error) if !error.is_silence() => memory.forget(&self.id, &self.entity),
            Err(_) => {}
        }
        response
    }

    /// The claims of a token, as far as they still hold.
    ///
    /// The account service decides whether it is used too early: the token was issued by that service's clock.
    async fn current_claims(
        &self,
        issuer: &Issuer,
        entity: &Entity,
        token: &Secret,
    ) -> Result<Option<Claims>, AuthError> {
        let claims = issuer.vouched_claims(token).await?;
        issuer.current_claims(entity, token, claims, &self.owner).await
    }
}
