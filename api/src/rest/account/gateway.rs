//! Gateways.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{AccessKey, ComponentId, GatewayId, GatewayRight, UserId, Username};

use super::{Collaborator, TokenAnswer};
use crate::rest::json::null_is_default;

/// A gateway, as far as the caller may see it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Gateway {
    /// Its id.
    pub id: GatewayId,
    /// Whether it has ever shown its key.
    #[serde(default)]
    pub activated: bool,
    /// The id of its frequency plan.
    pub frequency_plan: String,
    /// Where the packet forwarder configuration for it is.
    #[serde(default)]
    pub frequency_plan_url: String,
    /// Whether it updates itself.
    #[serde(default)]
    pub auto_update: bool,
    /// Whether it takes updates that are not finished.
    #[serde(default)]
    pub beta_updates: bool,
    /// Whether everybody may know where exactly it is.
    #[serde(default)]
    pub location_public: bool,
    /// Whether everybody may know how it is doing.
    #[serde(default)]
    pub status_public: bool,
    /// Whether everybody may know whose it is.
    #[serde(default)]
    pub owner_public: bool,
    /// Where it is; within a kilometre for those who may not know exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub antenna_location: Option<Location>,
    /// What else is known of it, such as `brand`, `model` and `placement`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub attributes: BTreeMap<String, String>,
    /// The router that it talks to; `null` when the network has none.
    #[serde(default)]
    pub router: Option<Router>,
    /// Routers to try when that one does not answer.
    #[serde(default, deserialize_with = "null_is_default")]
    pub fallback_routers: Vec<Router>,
    /// Whose it is, for those who may know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// Who may do what, for those who may know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collaborators: Option<Vec<Collaborator<GatewayRight>>>,
    /// The key with which it proves itself, for those who may know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<AccessKey>,
    /// A token for the network's components, for the gateway itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenAnswer>,
}

/// A place on Earth.
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
    /// Metres above the sea.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub altitude: Option<i32>,
}

/// A router and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Router {
    /// Its id.
    pub id: ComponentId,
    /// Its address for gRPC.
    pub address: String,
    /// Its address for MQTT.
    pub mqtt_address: String,
}

/// Whose a gateway is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Owner {
    /// The user's immutable id.
    pub id: UserId,
    /// The user's name.
    pub username: Username,
}

/// Something named by its id, or by the object that an answer had for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(untagged, expecting = "must be an id, or an object with it")]
pub enum Named<T> {
    /// The id alone.
    Id(T),
    /// A user's name as a member.
    User {
        /// The name.
        username: T,
    },
    /// The id as a member.
    Object {
        /// The id.
        id: T,
    },
}

/// What creating a gateway takes; other members are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("required" = ["id", "frequency_plan"]))]
pub struct NewGateway {
    /// Its id, taken for ever.
    pub id: GatewayId,
    /// Everything else is as in an update, the frequency plan being required.
    #[serde(flatten)]
    pub settings: GatewayUpdate,
}

/// What can be changed of a gateway; what is left out stays, other members are ignored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GatewayUpdate {
    /// The id of its frequency plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_plan: Option<String>,
    /// Where it is; the specification says `location` on creating.
    #[serde(skip_serializing_if = "Option::is_none", alias = "location")]
    pub antenna_location: Option<Location>,
    /// Whether it updates itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_update: Option<bool>,
    /// Whether it takes updates that are not finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta_updates: Option<bool>,
    /// Whether everybody may know where exactly it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location_public: Option<bool>,
    /// Whether everybody may know how it is doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_public: Option<bool>,
    /// Whether everybody may know whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_public: Option<bool>,
    /// What else is known of it; `null` takes an attribute away, those not named stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<BTreeMap<String, Option<String>>>,
    /// The router that it talks to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router: Option<Named<ComponentId>>,
    /// Routers to try when that one does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback_routers: Option<Vec<Named<ComponentId>>>,
    /// Who is to own it.
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
