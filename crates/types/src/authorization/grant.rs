//! Permission for work that goes on after the call that asked for it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Claims, ClientId, UserId};

/// The party that permitted work which goes on after the call that asked for it. The work goes on as long as the party
/// has the right.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// The owner of the application, whoever that is. Records of older versions name nobody.
    #[default]
    Owner,
    /// A user of the account service.
    User {
        /// The user's id.
        id: UserId,
        /// The OAuth client that called in the user's name.
        client: Option<ClientId>,
    },
    /// The holder of an access key of the application.
    Key {
        /// The key's id, which is no secret.
        id: String,
    },
}

impl Grant {
    /// The grant with which a caller acts; none for callers that are neither users nor access keys.
    pub fn of(claims: &Claims) -> Option<Self> {
        match claims.kind.as_str() {
            "user" => Some(Self::User { id: claims.sub.clone().try_into().ok()?, client: claims.client.clone() }),
            // A token that was exchanged for an access key begins its id with the one of the key.
            "application" => Some(Self::Key { id: claims.jti.as_deref()?.split_once('-')?.0.to_owned() }),
            _ => None,
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner => out.write_str("the owner"),
            Self::User { id, client: None } => write!(out, "user {id}"),
            Self::User { id, client: Some(client) } => write!(out, "user {id} with {client}"),
            Self::Key { id } => write!(out, "access key {id}"),
        }
    }
}
