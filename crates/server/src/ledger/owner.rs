//! Owners, who are charged for the resources that they use.

use std::{fmt, net::IpAddr, sync::Arc};

use serde::{Deserialize, Serialize};
use types::{AppId, UserId};

use crate::rate_limit::rate_limit_address;

/// An owner, who is charged for the resources that it uses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Owner {
    /// The user to whom an application, gateway or component belongs.
    User(Arc<str>),
    /// An application whose user is not known, because the account service cannot be asked.
    Application(Arc<str>),
    /// A gateway, whose user is not known either.
    Gateway(Arc<str>),
    /// A component or machine that calls with a token of its own.
    Component(Arc<str>),
    /// The address of a caller without credentials; for IPv6 its /64 network.
    Address(Arc<str>),
}

impl Owner {
    /// The owner of calls without credentials from this address.
    pub fn of_address(address: IpAddr) -> Self {
        Self::Address(rate_limit_address(address).into())
    }
}

impl From<&UserId> for Owner {
    fn from(user_id: &UserId) -> Self {
        Self::User(user_id.as_str().into())
    }
}

impl From<&AppId> for Owner {
    fn from(app_id: &AppId) -> Self {
        Self::Application(app_id.as_str().into())
    }
}

impl From<Owner> for String {
    fn from(owner: Owner) -> Self {
        owner.to_string()
    }
}

/// Reads the format that [`Display`](fmt::Display) writes.
impl TryFrom<String> for Owner {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let (kind, id) = text.split_once(' ').ok_or("an owner has a kind and an id")?;
        let id = id.into();
        match kind {
            "user" => Ok(Self::User(id)),
            "application" => Ok(Self::Application(id)),
            "gateway" => Ok(Self::Gateway(id)),
            "component" => Ok(Self::Component(id)),
            "address" => Ok(Self::Address(id)),
            _ => Err("an owner is a user, application, gateway, component or address"),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(id) => write!(out, "user {id}"),
            Self::Application(id) => write!(out, "application {id}"),
            Self::Gateway(id) => write!(out, "gateway {id}"),
            Self::Component(id) => write!(out, "component {id}"),
            Self::Address(address) => write!(out, "address {address}"),
        }
    }
}
