//! The subject of a token: its `type` and `sub` claims.

use types::{AppId, Claims, ServiceName, UserId};

use crate::{Error, Result};

/// The `type` of a user's token.
pub(crate) const USER: &str = "user";
/// The `type` of a token that was exchanged for an access key.
pub(crate) const APPLICATION: &str = "application";
/// The `type` of a gateway's own token.
pub(crate) const GATEWAY: &str = "gateway";

/// Whom a token was issued to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    User(UserId),
    /// The holder of this access key of the application.
    Application {
        app_id: AppId,
        key_id: String,
    },
    Gateway,
    Component,
}

impl Subject {
    /// Reads the subject of a token with these claims.
    pub(crate) fn of(claims: &Claims) -> Result<Self> {
        let unknown = || Error::NotUser("token of this type");
        match claims.kind.as_str() {
            USER => Ok(Self::User(claims.sub.clone().try_into()?)),
            APPLICATION => {
                let key_id = claims.jti.as_deref().and_then(|jti| jti.split_once('-')).ok_or_else(unknown)?.0;
                Ok(Self::Application { app_id: claims.sub.parse()?, key_id: key_id.to_owned() })
            }
            GATEWAY => Ok(Self::Gateway),
            // A token for applications is for network servers only: it must not make them the component.
            kind if kind.parse::<ServiceName>().is_ok() && claims.scope.is_empty() => Ok(Self::Component),
            _ => Err(unknown()),
        }
    }
}
