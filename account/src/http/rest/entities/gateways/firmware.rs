//! The short gateway format for the firmware of The Things Gateway, which has little memory.

use api::rest::account::{Gateway, Router};
use axum::http::{HeaderMap, header};
use schemars::JsonSchema;
use serde::Serialize;
use types::AccessKey;

/// The prefix of its user agent.
const USER_AGENT: &str = "TTNGateway";

/// A gateway, trimmed.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TrimmedGateway")]
pub(in crate::http::rest) struct Trimmed {
    activated: bool,
    frequency_plan: String,
    frequency_plan_url: String,
    auto_update: bool,
    beta_updates: bool,
    location_public: bool,
    status_public: bool,
    owner_public: bool,
    router: Option<TrimmedRouter>,
    fallback_routers: Vec<TrimmedRouter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<AccessKey>,
}

/// A router without its id.
#[derive(Serialize, JsonSchema)]
struct TrimmedRouter {
    address: String,
    mqtt_address: String,
}

/// Returns true if the firmware of a gateway sent the request.
pub(in crate::http::rest) fn is_sender(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    agent.is_some_and(|agent| agent.starts_with(USER_AGENT))
}

impl From<Gateway> for Trimmed {
    fn from(gateway: Gateway) -> Self {
        Self {
            activated: gateway.activated,
            frequency_plan: gateway.frequency_plan,
            frequency_plan_url: gateway.frequency_plan_url,
            auto_update: gateway.auto_update,
            beta_updates: gateway.beta_updates,
            location_public: gateway.location_public,
            status_public: gateway.status_public,
            owner_public: gateway.owner_public,
            router: gateway.router.map(TrimmedRouter::from),
            fallback_routers: gateway.fallback_routers.into_iter().map(TrimmedRouter::from).collect(),
            key: gateway.key,
        }
    }
}

impl From<Router> for TrimmedRouter {
    fn from(router: Router) -> Self {
        Self { address: router.address, mqtt_address: router.mqtt_address }
    }
}
