//! Collaborators of applications, gateways and components.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::Username;

/// A user with rights of type `R`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{R}Collaborator")]
pub struct Collaborator<R> {
    /// The user who has the rights.
    pub username: Username,
    /// The e-mail address.
    pub email: String,
    /// The user's rights.
    pub rights: Vec<R>,
}

/// The rights to set: a bare list as in the specification, or an object as v2 SDKs send it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{R}Setting")]
#[serde(untagged, expecting = "must be a list of rights, or an object with such a list as `rights`")]
pub enum RightsBody<R> {
    /// A bare list.
    Bare(#[schemars(length(min = 1), extend("uniqueItems" = true))] Vec<R>),
    /// The list in an object.
    Within {
        /// The rights.
        #[schemars(length(min = 1), extend("uniqueItems" = true))]
        rights: Vec<R>,
    },
}
