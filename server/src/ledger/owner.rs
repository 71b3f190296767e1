//! Who is charged for what is used.

use std::{fmt, net::IpAddr, sync::Arc};

use types::{AppId, UserId};

use crate::rate_limit::rate_limit_address;

/// Who is charged for what is used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
