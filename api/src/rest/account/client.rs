//! OAuth clients: programs that act for users.

use serde::{Deserialize, Serialize};
use types::{ClientId, Scope, Secret};

use crate::rest::json::null_is_default;

/// An OAuth client.
///
/// While neither `accepted` nor `rejected`, the operator has not decided yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewClient {
    /// Its id, taken for ever.
    pub name: ClientId,
    /// What people are told about it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub description: String,
    /// Where users are sent back to.
    pub uri: String,
    /// How it may get tokens; without any, by codes and refresh tokens.
    #[serde(default, deserialize_with = "null_is_default")]
    pub grants: Vec<String>,
    /// The general scopes that it may ask for.
    pub scope: Vec<Scope>,
}

/// What can be changed of an OAuth client; what is left out stays, other members are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientUpdate {
    /// What people are told about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where users are sent back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// How it may get tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grants: Option<Vec<String>>,
    /// The general scopes that it may ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Vec<Scope>>,
}
