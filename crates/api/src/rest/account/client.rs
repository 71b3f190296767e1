//! OAuth clients: programs that act for users.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{ClientId, Scope, Secret};

use crate::rest::json::null_is_default;

const GENERAL: &str = "^(profile|apps|gateways|components|clients)$";

/// The grants that a third-party client may use.
const OWN_GRANTS: &str = "^(authorization_code|refresh_token)$";

/// An OAuth client.
///
/// If neither `accepted` nor `rejected`, it awaits the operator's approval.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Client {
    /// The id.
    pub name: ClientId,
    /// A description for users.
    #[serde(default)]
    pub description: String,
    /// The secret, for its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
    /// The redirect URI.
    #[serde(default)]
    pub uri: String,
    /// The grants that it may use.
    #[serde(default)]
    pub grants: Vec<String>,
    /// The general scopes that it may request.
    #[serde(default)]
    pub scope: Vec<Scope>,
    /// True if the operator accepted it.
    #[serde(default)]
    pub accepted: bool,
    /// True if the operator rejected it.
    #[serde(default)]
    pub rejected: bool,
    /// True if it is a first-party client.
    #[serde(default)]
    pub official: bool,
}

/// A new OAuth client; other members are ignored, including the secret and the flags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewClient {
    /// The id, which is never reused.
    pub name: ClientId,
    /// A description for users.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(length(max = 1000))]
    pub description: String,
    /// The redirect URI.
    #[schemars(length(max = 500))]
    pub uri: String,
    /// The grants that it may use; by default codes and refresh tokens.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(inner(pattern(OWN_GRANTS)))]
    pub grants: Vec<String>,
    /// The general scopes that it may request.
    #[schemars(length(min = 1, max = 5), inner(pattern(GENERAL)))]
    pub scope: Vec<Scope>,
}

/// Changes of an OAuth client; omitted members stay unchanged, others are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClientUpdate {
    /// A description for users.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub description: Option<String>,
    /// The redirect URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 500))]
    pub uri: Option<String>,
    /// The grants that it may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(inner(pattern(OWN_GRANTS)))]
    pub grants: Option<Vec<String>>,
    /// The general scopes that it may request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 5), inner(pattern(GENERAL)))]
    pub scope: Option<Vec<Scope>>,
}
