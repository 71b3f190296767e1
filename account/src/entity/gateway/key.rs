//! A gateway's own key, and the token that it can be exchanged for.

use types::{AccessKey, GatewayId, GatewayRight, Secret};

use super::{Gateway, GatewayRights};
use crate::{
    Account, Result,
    entity::{Entity, access::Caller, stored_key::StoredKey},
};

impl Account {
    pub(super) fn make_gateway_key(&self, gateway_id: &GatewayId) -> Result<StoredKey> {
        self.make_key(&aad(gateway_id))
    }

    pub(super) fn is_gateway_key(&self, gateway: &Gateway, sent: &AccessKey) -> bool {
        gateway.key.matches(&self.hash_of_key(&aad(&gateway.id), sent))
    }

    pub(crate) fn gateway_key(&self, gateway: &Gateway) -> Result<AccessKey> {
        self.open_key("a gateway's key", &aad(&gateway.id), &gateway.key)
    }

    /// The gateway's key, for callers who have every right that the key gives.
    pub(crate) fn gateway_key_for(&self, gateway: &Gateway, rights: &GatewayRights) -> Result<Option<AccessKey>> {
        let all = [GatewayRight::Settings, GatewayRight::Location].iter().all(|right| rights.contains(right));
        all.then(|| self.gateway_key(gateway)).transpose()
    }

    /// Issues a token for the gateway. The first request with the gateway's own key activates the gateway.
    pub(crate) async fn gateway_token(&self, caller: &Caller, gateway: &mut Gateway) -> Result<Secret> {
        if matches!(caller, Caller::Key(_)) && !gateway.activated {
            let activate = |gateway: &mut Gateway| {
                gateway.activated = true;
                Ok(())
            };
            self.change(&gateway.id, activate).await?;
            gateway.activated = true;
        }
        self.sign_gateway(gateway).await
    }
}

/// The associated data of a gateway's key, and the context of its HMAC.
fn aad(gateway_id: &GatewayId) -> String {
    format!("key of {} {gateway_id}", Gateway::NOUN)
}
