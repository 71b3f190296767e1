//! What a token says about its bearer, in the shape that v2 clients and components read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    AppId, ApplicationRight, ClientId, ComponentId, ComponentRight, GatewayId, GatewayRight, Scope, ServiceName,
};

/// The claims of an access token.
///
/// Times are seconds since 1970. A right counts only when both the scope names the thing and its map holds the right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Who issued the token: the id of the account service.
    pub iss: String,
    /// Whom it is about: a user's id, or the id of an application, gateway or component.
    pub sub: String,
    /// What `sub` is: `user`, `gateway`, `handler`, `router` or `broker`.
    #[serde(rename = "type")]
    pub kind: String,
    /// When it was issued, backdated so that slow clocks accept it.
    pub iat: u64,
    /// When it ends.
    pub exp: u64,
    /// The id of this token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jti: Option<String>,
    /// The OAuth client it was issued to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientId>,
    /// What it may be used for.
    #[serde(default)]
    pub scope: Vec<Scope>,
    /// Whether it may be exchanged for one with other entities.
    #[serde(default)]
    pub interchangeable: bool,
    /// Rights to single applications.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub apps: BTreeMap<AppId, Vec<ApplicationRight>>,
    /// Rights to single gateways.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gateways: BTreeMap<GatewayId, Vec<GatewayRight>>,
    /// Rights to single components.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub components: BTreeMap<ComponentId, Vec<ComponentRight>>,
    /// The name with which the user logs in; with the scope `profile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The user's address; with the scope `profile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// When the user registered; with the scope `profile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The user's full name; with the scope `profile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<FullName>,
    /// Whether the address is confirmed; with the scope `profile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<bool>,
    /// Whether everybody may know where it is; in a gateway's own token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location_public: Option<bool>,
    /// Whether everybody may know how it is doing; in a gateway's own token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_public: Option<bool>,
}

/// First and last name; either may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullName {
    /// The first name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// The last name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
}

impl Claims {
    /// Whether the bearer may do `right` to this application.
    pub fn allows(&self, app_id: &AppId, right: ApplicationRight) -> bool {
        self.reaches(app_id) && self.apps.get(app_id).is_some_and(|rights| rights.contains(&right))
    }

    /// Whether the bearer has any business with this application.
    pub fn reaches(&self, app_id: &AppId) -> bool {
        self.scope.iter().any(|scope| matches!(scope, Scope::App(id) if id == app_id))
    }

    /// Whether the bearer is that component of that service.
    pub fn is_component(&self, service: ServiceName, id: &ComponentId) -> bool {
        self.kind == service.as_str() && self.sub == id.as_str()
    }
}
