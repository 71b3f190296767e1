//! The kinds of network components that announce themselves.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of network component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServiceName {
    /// Receives frames from gateways.
    Router,
    /// Forwards frames to the right handler.
    Broker,
    /// Decodes frames and publishes messages.
    Handler,
}

/// A text that is not the name of a service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("service name `{0}` is unknown; allowed are router, broker and handler")]
pub struct UnknownService(String);

impl ServiceName {
    /// Returns the name as written in APIs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Router => "router",
            Self::Broker => "broker",
            Self::Handler => "handler",
        }
    }
}

impl FromStr for ServiceName {
    type Err = UnknownService;

    fn from_str(text: &str) -> Result<Self, UnknownService> {
        [Self::Router, Self::Broker, Self::Handler]
            .into_iter()
            .find(|service| service.as_str() == text)
            .ok_or_else(|| UnknownService(text.to_owned()))
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
