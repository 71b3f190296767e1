//! OAuth scopes: what a token may be used for.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;

use crate::{AppId, ComponentId, GatewayId, IdError};

/// One entry of a token's scope.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(try_from = "String", into = "String", extend("pattern" = "^(profile|clients|(apps|gateways|components)(:[0-9a-z_-]{2,36})?)$"))]
pub enum Scope {
    /// View and edit the profile.
    Profile,
    /// List and create applications.
    Apps,
    /// Everything that needs the id of this application.
    App(AppId),
    /// List and create gateways.
    Gateways,
    /// Everything that needs the id of this gateway.
    Gateway(GatewayId),
    /// List and create components.
    Components,
    /// Everything that needs the id of this component.
    Component(ComponentId),
    /// Manage OAuth clients.
    Clients,
}

impl Scope {
    /// Returns the general scope that allows requesting this one.
    pub fn general(&self) -> Self {
        match self {
            Self::App(_) => Self::Apps,
            Self::Gateway(_) => Self::Gateways,
            Self::Component(_) => Self::Components,
            other => other.clone(),
        }
    }
}

/// Reasons for refusing a text as a scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// There is no such scope.
    #[error(
        "scope `{0}` is unknown; allowed are profile, apps, gateways, components, clients, apps:<id>, gateways:<id> \
         and components:<id>"
    )]
    Unknown(String),
    /// The part after the colon is not an id.
    #[error(transparent)]
    Id(#[from] IdError),
}

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        Ok(match text.split_once(':') {
            None => match text {
                "profile" => Self::Profile,
                "apps" => Self::Apps,
                "gateways" => Self::Gateways,
                "components" => Self::Components,
                "clients" => Self::Clients,
                _ => return Err(ScopeError::Unknown(text.to_owned())),
            },
            Some(("apps", id)) => Self::App(id.parse()?),
            Some(("gateways", id)) => Self::Gateway(id.parse()?),
            Some(("components", id)) => Self::Component(id.parse()?),
            Some(_) => return Err(ScopeError::Unknown(text.to_owned())),
        })
    }
}

crate::serde_as_text!(Scope);

impl fmt::Display for Scope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Profile => out.write_str("profile"),
            Self::Apps => out.write_str("apps"),
            Self::App(id) => write!(out, "apps:{id}"),
            Self::Gateways => out.write_str("gateways"),
            Self::Gateway(id) => write!(out, "gateways:{id}"),
            Self::Components => out.write_str("components"),
            Self::Component(id) => write!(out, "components:{id}"),
            Self::Clients => out.write_str("clients"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Conformance: Scopes: `profile`, `apps`, `gateways`, `components`, and those of entities
    #[test]
    fn every_form_survives_a_round_trip() {
        for text in ["profile", "apps", "apps:my-app", "gateways", "gateways:gw-1", "components:handler", "clients"] {
            assert_eq!(text.parse::<Scope>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn refuses_malformed_scopes() {
        for text in ["", "app", "apps:", "apps:NO", "clients:x1", "apps:a1:b1"] {
            assert!(text.parse::<Scope>().is_err(), "{text}");
        }
    }
}
