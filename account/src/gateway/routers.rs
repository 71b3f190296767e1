//! The network's routers, as gateways are told of them.

use api::rest::account::Router;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::ComponentId;

use super::Gateway;
use crate::{Account, Error, Result};

/// A router that gateways can be told to use.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouterSettings {
    /// Its id.
    #[schemars(with = "String")]
    pub id: ComponentId,
    /// Its address for gRPC, such as `router.example.com:1901`.
    pub address: String,
    /// Its address for MQTT, such as `mqtts://router.example.com:8883`.
    pub mqtt_address: String,
}

impl Account {
    /// The router that a gateway talks to: the one it names, as long as the network has it, or else the first.
    pub(crate) fn router_of(&self, gateway: &Gateway) -> Option<Router> {
        let named = gateway.router.as_ref().and_then(|id| self.router_with(id));
        named.or_else(|| self.settings.routers.first()).map(Router::from)
    }

    /// The routers to try next: those it names, or else all the others.
    pub(crate) fn fallback_routers_of(&self, gateway: &Gateway) -> Vec<Router> {
        let named: Vec<_> =
            gateway.fallback_routers.iter().filter_map(|id| self.router_with(id)).map(Router::from).collect();
        if !named.is_empty() {
            return named;
        }
        let first = self.router_of(gateway).map(|router| router.id);
        self.settings.routers.iter().filter(|router| first.as_ref() != Some(&router.id)).map(Router::from).collect()
    }

    /// Refuses routers that the network does not have.
    pub(super) fn check_router(&self, id: &ComponentId) -> Result<()> {
        let unknown = Error::Invalid { what: "router", must: "must be the id of a router of this network" };
        self.router_with(id).map(drop).ok_or(unknown)
    }

    fn router_with(&self, id: &ComponentId) -> Option<&RouterSettings> {
        self.settings.routers.iter().find(|router| router.id == *id)
    }
}

impl From<&RouterSettings> for Router {
    fn from(router: &RouterSettings) -> Self {
        let RouterSettings { id, address, mqtt_address } = router.clone();
        Self { id, address, mqtt_address }
    }
}
