//! Components of the network.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{ComponentId, ComponentRight, Secret, ServiceName, Timestamp};

use super::Collaborator;
use crate::rest::json::millis;

/// A component, as far as the caller may see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Component {
    /// What it does.
    #[serde(rename = "type")]
    pub service: ServiceName,
    /// Its id.
    pub id: ComponentId,
    /// When it was created.
    #[serde(with = "millis")]
    #[schemars(with = "Timestamp")]
    pub created: Timestamp,
    /// Who may do what, for those who may know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collaborators: Option<Vec<Collaborator<ComponentRight>>>,
}

/// What creating a component takes; what it does is in the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewComponent {
    /// Its id, taken for ever.
    pub id: ComponentId,
}

/// The token with which a component proves itself.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ComponentToken {
    /// The token.
    pub token: Secret,
    /// When it ends.
    #[serde(with = "millis")]
    #[schemars(with = "Timestamp")]
    pub expires: Timestamp,
}
