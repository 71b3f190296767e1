//! The sorts of network components that announce themselves.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A sort of network component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceName {
    /// Takes frames from gateways.
    Router,
    /// Brings frames to the handler they belong to.
    Broker,
    /// Turns frames into messages.
    Handler,
}

/// A text that names no service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("service name `{0}` is unknown; allowed are router, broker and handler")]
pub struct UnknownService(String);

impl ServiceName {
    /// The service as the interfaces spell it.
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
