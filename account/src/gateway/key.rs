//! The key with which a gateway proves itself, and the token that it gets for it.

use types::{AccessKey, GatewayId, GatewayRight, Secret};

use super::{Gateway, Rights};
use crate::{
    Account, Result,
    entity::{Entity, access::Caller, stored_key::KeptKey},
};

impl Account {
    /// Makes the key of a gateway.
    pub(super) fn make_gateway_key(&self, gateway_id: &GatewayId) -> Result<KeptKey> {
        self.make_key(&place(gateway_id))
    }

    /// Whether somebody sent the gateway's key.
    pub(super) fn is_gateway_key(&self, gateway: &Gateway, sent: &AccessKey) -> bool {
        gateway.key.has(&self.mark_of_key(&place(&gateway.id), sent))
    }

    /// The gateway's key itself.
    pub(crate) fn gateway_key(&self, gateway: &Gateway) -> Result<AccessKey> {
        self.open_key("a gateway's key", &place(&gateway.id), &gateway.key)
    }

    /// The same for somebody with these rights, who must be able to do all that the key lets one do.
    pub(crate) fn gateway_key_for(&self, gateway: &Gateway, rights: &Rights) -> Result<Option<AccessKey>> {
        let all = [GatewayRight::Settings, GatewayRight::Location].iter().all(|right| rights.contains(right));
        all.then(|| self.gateway_key(gateway)).transpose()
    }

    /// A token for the gateway, which is activated when it asks for the first time itself.
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

/// What the mark and the seal of a gateway's key belong to.
fn place(gateway_id: &GatewayId) -> String {
    format!("key of {} {gateway_id}", Gateway::NOUN)
}
