//! The contents of a token, in the format that v2 clients and components read.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AppId, ApplicationRight, ClientId, ComponentId, ComponentRight, GatewayId, GatewayRight, Scope, ServiceName, UserId,
};

/// The claims of an access token. Times are seconds since 1970.
///
/// A right counts only if the scope names the entity and the map of that entity's rights contains it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The issuer of the token: the id of the account service.
    pub iss: String,
    /// The subject: the id of a user, application, gateway or component.
    pub sub: String,
    /// The type of the subject: `user`, `gateway`, `handler`, `router` or `broker`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Time of issue in seconds since 1970, backdated to tolerate slow clocks.
    pub iat: u64,
    /// Time of expiry, in seconds since 1970.
    pub exp: u64,
    /// The id of this token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jti: Option<String>,
    /// The OAuth client it was issued to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientId>,
    /// Scopes in which the token may be used.
    #[serde(default)]
    pub scope: Vec<Scope>,
    /// True if it can be exchanged for a token for other entities.
    #[serde(default)]
    pub interchangeable: bool,
    /// Rights to applications.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub apps: BTreeMap<AppId, Vec<ApplicationRight>>,
    /// Rights to gateways.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gateways: BTreeMap<GatewayId, Vec<GatewayRight>>,
    /// Rights to components.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub components: BTreeMap<ComponentId, Vec<ComponentRight>>,
    /// The username; with the scope `profile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The user's e-mail address; with the scope `profile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Time at which the user registered; with the scope `profile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The user's full name; with the scope `profile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<FullName>,
    /// True if the e-mail address is confirmed; with the scope `profile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<bool>,
    /// The user to whom a gateway or component belongs, and who is charged for it; in its own token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<UserId>,
    /// True if the gateway's location is public; in a gateway's own token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location_public: Option<bool>,
    /// True if the gateway's status is public; in a gateway's own token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_public: Option<bool>,
}

/// First and last name; either may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FullName {
    /// The first name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub first: Option<String>,
    /// The last name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub last: Option<String>,
}

impl Claims {
    /// Returns true if the bearer has `right` to this application.
    pub fn allows(&self, app_id: &AppId, right: ApplicationRight) -> bool {
        self.reaches(app_id) && self.apps.get(app_id).is_some_and(|rights| rights.contains(&right))
    }

    /// Returns true if the bearer has any right to this application.
    pub fn reaches(&self, app_id: &AppId) -> bool {
        self.scope.iter().any(|scope| matches!(scope, Scope::App(id) if id == app_id))
    }

    /// Returns true if the bearer is this component of this service. A token for applications that a component was
    /// given to show to others does not make its bearer the component.
    pub fn is_component(&self, service: ServiceName, id: &ComponentId) -> bool {
        self.kind == service.as_str() && self.sub == id.as_str() && self.scope.is_empty() && self.apps.is_empty()
    }
}
