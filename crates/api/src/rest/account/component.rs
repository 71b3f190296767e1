//! Network components.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{ComponentId, ComponentRight, Secret, ServiceName, Timestamp};

use super::Collaborator;
use crate::rest::json::millis;

/// A component, as far as the caller may see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Component {
    /// The service that it provides.
    #[serde(rename = "type")]
    pub service: ServiceName,
    /// Unique among components of its service.
    pub id: ComponentId,
    /// When it was created.
    #[serde(with = "millis")]
    #[schemars(with = "Timestamp")]
    pub created: Timestamp,
    /// The collaborators, for callers who may see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collaborators: Option<Vec<Collaborator<ComponentRight>>>,
}

/// A new component; its service is in the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewComponent {
    /// The id, which is never reused.
    pub id: ComponentId,
}

/// The token with which a component authenticates.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ComponentToken {
    /// Valid for 93 days.
    pub token: Secret,
    /// When it expires.
    #[serde(with = "millis")]
    #[schemars(with = "Timestamp")]
    pub expires: Timestamp,
}
