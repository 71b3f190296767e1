//! Recognizes network brokers among callers: those with a component token, and those that sign a token themselves, as
//! v2's do.

use server::auth::{AuthError, Caller, SelfSigned};
use types::{Credential, Kind, Kinded, ServiceName};

use super::NetworkBrokers;
use crate::{Error, access::Access};

impl NetworkBrokers {
    /// Allows a network broker that this handler trusts; [`Error::NetworkBrokerDenied`] otherwise.
    pub(crate) async fn allow(&self, access: &Access, caller: Caller) -> Result<(), Error> {
        let own_token = match &caller.credential {
            Some(Credential::Token(token)) => SelfSigned::of(token),
            _ => None,
        };
        match own_token {
            Some(token) => self.allow_self_signed(&token, &caller).await,
            None => access.allow_network_broker(caller, &self.ids).await,
        }
    }

    /// Allows a network broker whose token is signed with the key that it has announced. Unlike in v2, an announcement
    /// without a key allows nobody.
    async fn allow_self_signed(&self, token: &SelfSigned, caller: &Caller) -> Result<(), Error> {
        let id = self.ids.iter().find(|id| id.as_str() == token.issuer()).ok_or(Error::NetworkBrokerDenied)?;
        let public_key = match self.discovery.get(ServiceName::Broker, id).await {
            Ok(announcement) => announcement.public_key,
            Err(error) if error.kind() == Kind::NotFound => String::new(),
            Err(error) => return Err(Error::Discovery(error)),
        };
        if public_key.trim().is_empty() {
            return Err(Error::NetworkBrokerKey(id.clone()));
        }
        token.verify(&public_key, &self.caller.id, self.clock.now()).map_err(AuthError::Token)?;
        caller.usage.set_component(ServiceName::Broker, id);
        caller.usage.set_network();
        Ok(())
    }
}
