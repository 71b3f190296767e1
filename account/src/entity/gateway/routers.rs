//! The routers of the network that gateways should connect to.

use api::rest::account::Router;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::ComponentId;

use super::Gateway;
use crate::{Account, Error, Result};

/// A router that gateways can use.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouterSettings {
    /// Its component id.
    #[schemars(with = "String")]
    pub id: ComponentId,
    /// Its gRPC address, such as `router.example.com:1901`.
    pub address: String,
    /// Its MQTT address, such as `mqtts://router.example.com:8883`.
    pub mqtt_address: String,
}

impl Account {
    /// The router that the gateway names, if it is still configured; otherwise the first one.
    pub(crate) fn router_of(&self, gateway: &Gateway) -> Option<Router> {
        let named = gateway.router.as_ref().and_then(|id| self.router_with(id));
        named.or_else(|| self.settings.routers.first()).map(Router::from)
    }

    /// The fallback routers that the gateway names, or else all the others.
    pub(crate) fn fallback_routers_of(&self, gateway: &Gateway) -> Vec<Router> {
        let named: Vec<_> =
            gateway.fallback_routers.iter().filter_map(|id| self.router_with(id)).map(Router::from).collect();
        if !named.is_empty() {
            return named;
        }
        let first = self.router_of(gateway).map(|router| router.id);
        self.settings.routers.iter().filter(|router| first.as_ref() != Some(&router.id)).map(Router::from).collect()
    }

    /// Refuses routers that are not configured.
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
