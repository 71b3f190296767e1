//! The key with which a gateway authenticates, and the token that it gets for it.

use types::{AccessKey, GatewayId, GatewayRight, Secret};

use super::{Gateway, Rights};
use crate::{
    Account, Result,
    entity::{Entity, access::Caller, stored_key::StoredKey},
};

impl Account {
    /// Makes the key of a gateway.
    pub(super) fn make_gateway_key(&self, gateway_id: &GatewayId) -> Result<StoredKey> {
        self.make_key(&place(gateway_id))
    }

    /// Whether this is the gateway's key.
    pub(super) fn is_gateway_key(&self, gateway: &Gateway, sent: &AccessKey) -> bool {
        gateway.key.has(&self.mark_of_key(&place(&gateway.id), sent))
    }

    /// Returns the gateway's key.
    pub(crate) fn gateway_key(&self, gateway: &Gateway) -> Result<AccessKey> {
        self.open_key("a gateway's key", &place(&gateway.id), &gateway.key)
    }

    /// Returns the gateway's key if these rights include everything that the key allows.
    pub(crate) fn gateway_key_for(&self, gateway: &Gateway, rights: &Rights) -> Result<Option<AccessKey>> {
        let all = [GatewayRight::Settings, GatewayRight::Location].iter().all(|right| rights.contains(right));
        all.then(|| self.gateway_key(gateway)).transpose()
    }

    /// Issues a token for the gateway, and activates it the first time that it asks itself.
    pub(crate) async fn gateway_token(&self, caller: &Caller, gateway: &mut Gateway) -> Result<Secret> {
        if matches!(caller, Caller::Key(_)) && !gateway.activated {
            let activate = |gateway: &mut Gateway| {
                gateway.activated = true;
                Ok(())
            };
            self.change(&gateway.id, activate).await?;
            gateway.activated = true;
        }
        self.sign_gateway(gateway)
    }
}

/// The context of the HMAC and the seal of a gateway's key.
fn place(gateway_id: &GatewayId) -> String {
    format!("key of {} {gateway_id}", Gateway::NOUN)
}
