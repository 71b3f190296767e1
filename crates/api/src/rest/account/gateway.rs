//! Gateways.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{AccessKey, ComponentId, GatewayId, GatewayRight, UserId, Username};

use super::{Collaborator, TokenResponse};
use crate::rest::json::null_is_default;

/// A gateway, as far as the caller may see it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Gateway {
    /// The id.
    pub id: GatewayId,
    /// True if it has ever used its key.
    #[serde(default)]
    pub activated: bool,
    /// The id of the frequency plan.
    pub frequency_plan: String,
    /// The URL of the packet forwarder configuration.
    #[serde(default)]
    pub frequency_plan_url: String,
    /// True if it updates itself automatically.
    #[serde(default)]
    pub auto_update: bool,
    /// True if it installs beta updates.
    #[serde(default)]
    pub beta_updates: bool,
    /// True if its exact location is public.
    #[serde(default)]
    pub location_public: bool,
    /// True if its status is public.
    #[serde(default)]
    pub status_public: bool,
    /// True if its owner is public.
    #[serde(default)]
    pub owner_public: bool,
    /// The location; accurate to a kilometre for callers who may not see the exact one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub antenna_location: Option<Location>,
    /// Further attributes, such as `brand`, `model` and `placement`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub attributes: BTreeMap<String, String>,
    /// The router that it uses; `null` if the network has none.
    #[serde(default)]
    pub router: Option<Router>,
    /// Routers to use when the first one is down.
    #[serde(default, deserialize_with = "null_is_default")]
    pub fallback_routers: Vec<Router>,
    /// The owner, for callers who may see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// The collaborators, for callers who may see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collaborators: Option<Vec<Collaborator<GatewayRight>>>,
    /// The key with which it authenticates, for callers who may see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<AccessKey>,
    /// A token for network components, for the gateway itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenResponse>,
}

/// A location on Earth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Location {
    /// Degrees east, -180 to 180.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -180, max = 180))]
    pub longitude: Option<f64>,
    /// Degrees north, -90 to 90.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -90, max = 90))]
    pub latitude: Option<f64>,
    /// Metres above sea level, -12,000 to 40,000,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -12_000, max = 40_000_000))]
    pub altitude: Option<i32>,
}

/// A router and its addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Router {
    /// The id.
    pub id: ComponentId,
    /// The gRPC address.
    pub address: String,
    /// For gateways that connect over MQTT.
    pub mqtt_address: String,
}

/// The owner of a gateway or an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Owner {
    /// The user's immutable id.
    pub id: UserId,
    /// The username.
    pub username: Username,
}

/// A reference by id, or by the object that a response contained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(untagged, expecting = "must be an id, or an object with it")]
pub enum Named<T> {
    /// A bare id.
    Id(T),
    /// An object with a username.
    User {
        /// The username.
        username: T,
    },
    /// An object with an id.
    Object {
        /// The id.
        id: T,
    },
}

/// A new gateway; other members are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("required" = ["id", "frequency_plan"]))]
pub struct NewGateway {
    /// The id, which is never reused.
    pub id: GatewayId,
    /// The other members are those of an update; the frequency plan is required.
    #[serde(flatten)]
    pub settings: GatewayUpdate,
}

/// Changes of a gateway; omitted members stay unchanged, others are ignored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GatewayUpdate {
    /// The id of the frequency plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_plan: Option<String>,
    /// The location; the specification calls it `location` in a new gateway.
    #[serde(skip_serializing_if = "Option::is_none", alias = "location")]
    pub antenna_location: Option<Location>,
    /// True if it updates itself automatically.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_update: Option<bool>,
    /// True if it installs beta updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta_updates: Option<bool>,
    /// True if its exact location is public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location_public: Option<bool>,
    /// True if its status is public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_public: Option<bool>,
    /// True if its owner is public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_public: Option<bool>,
    /// Further attributes; `null` removes one, omitted ones stay unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<BTreeMap<String, Option<String>>>,
    /// The router that it uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router: Option<Named<ComponentId>>,
    /// Routers to use when the first one is down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback_routers: Option<Vec<Named<ComponentId>>>,
    /// The new owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Named<Username>>,
}

impl<T> Named<T> {
    /// The id.
    pub fn id(&self) -> &T {
        let (Self::Id(id) | Self::User { username: id } | Self::Object { id }) = self;
        id
    }
}
