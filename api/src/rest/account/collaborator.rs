//! Collaborators of applications, gateways and components.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::Username;

/// Somebody with rights of the sort `R`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{R}Collaborator")]
pub struct Collaborator<R> {
    /// Who.
    pub username: Username,
    /// The user's address.
    pub email: String,
    /// What they may do.
    pub rights: Vec<R>,
}

/// The rights to set: the specification has the bare list, SDKs of v2 send it in an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{R}Setting")]
#[serde(untagged, expecting = "must be a list of rights, or an object with such a list as `rights`")]
pub enum RightsBody<R> {
    /// The list alone.
    Bare(#[schemars(length(min = 1), extend("uniqueItems" = true))] Vec<R>),
    /// The list as a member.
    Within {
        /// The list.
        #[schemars(length(min = 1), extend("uniqueItems" = true))]
        rights: Vec<R>,
    },
}
