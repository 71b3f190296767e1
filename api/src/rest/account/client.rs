//! OAuth clients: programs that act for users.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{ClientId, Scope, Secret};

use crate::rest::json::null_is_default;

/// The scopes that name no single thing.
const GENERAL: &str = "^(profile|apps|gateways|components|clients)$";

/// The grants that a client of a user's own may have.
const OWN_GRANTS: &str = "^(authorization_code|refresh_token)$";

/// An OAuth client.
///
/// While neither `accepted` nor `rejected`, the operator has not decided yet.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Client {
    /// Its id.
    pub name: ClientId,
    /// What people are told about it.
    #[serde(default)]
    pub description: String,
    /// Its secret, for its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
    /// Where users are sent back to.
    #[serde(default)]
    pub uri: String,
    /// How it may get tokens.
    #[serde(default)]
    pub grants: Vec<String>,
    /// The general scopes that it may ask for.
    #[serde(default)]
    pub scope: Vec<Scope>,
    /// Whether the operator lets it in.
    #[serde(default)]
    pub accepted: bool,
    /// Whether the operator keeps it out.
    #[serde(default)]
    pub rejected: bool,
    /// Whether it is the operator's own.
    #[serde(default)]
    pub official: bool,
}

/// What creating an OAuth client takes; other members are ignored, the secret and the flags among them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewClient {
    /// Its id, taken for ever.
    pub name: ClientId,
    /// What people are told about it.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(length(max = 1000))]
    pub description: String,
    /// Where users are sent back to.
    #[schemars(length(max = 500))]
    pub uri: String,
    /// How it may get tokens; without any, by codes and refresh tokens.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(inner(pattern(OWN_GRANTS)))]
    pub grants: Vec<String>,
    /// The general scopes that it may ask for.
    #[schemars(length(min = 1, max = 5), inner(pattern(GENERAL)))]
    pub scope: Vec<Scope>,
}

/// What can be changed of an OAuth client; what is left out stays, other members are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClientUpdate {
    /// What people are told about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub description: Option<String>,
    /// Where users are sent back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 500))]
    pub uri: Option<String>,
    /// How it may get tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(inner(pattern(OWN_GRANTS)))]
    pub grants: Option<Vec<String>>,
    /// The general scopes that it may ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 5), inner(pattern(GENERAL)))]
    pub scope: Option<Vec<Scope>>,
}
