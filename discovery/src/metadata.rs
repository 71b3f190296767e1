//! Metadata of components: the applications, gateways, join EUIs and prefixes of device addresses that they serve.

use std::{fmt, str::FromStr};

use api::discovery::metadata::Metadata as Message;
use types::{AppEui, AppId, DevAddrPrefix, GatewayId, ServiceName};

use crate::{Error, error::Result};

/// Something that one component serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Metadata {
    /// An application, served by a handler.
    AppId(AppId),
    /// A gateway, served by a router.
    GatewayId(GatewayId),
    /// A join EUI, served by a handler.
    AppEui(AppEui),
    /// A prefix of device addresses, served by a network broker.
    DevAddrPrefix(DevAddrPrefix),
}

impl Metadata {
    /// The service whose components serve this.
    pub(crate) fn service(&self) -> ServiceName {
        match self {
            Self::AppId(_) | Self::AppEui(_) => ServiceName::Handler,
            Self::GatewayId(_) => ServiceName::Router,
            Self::DevAddrPrefix(_) => ServiceName::Broker,
        }
    }
}

/// The form used in store keys and error messages: `app_id:my-app`.
impl fmt::Display for Metadata {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AppId(id) => write!(out, "app_id:{id}"),
            Self::GatewayId(id) => write!(out, "gateway_id:{id}"),
            Self::AppEui(eui) => write!(out, "app_eui:{eui}"),
            Self::DevAddrPrefix(prefix) => write!(out, "dev_addr_prefix:{prefix}"),
        }
    }
}

impl FromStr for Metadata {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = || Error::invalid("Metadata", "must be as it is written");
        let (kind, value) = text.split_once(':').ok_or_else(invalid)?;
        Ok(match kind {
            "app_id" => Self::AppId(value.parse()?),
            "gateway_id" => Self::GatewayId(value.parse()?),
            "app_eui" => Self::AppEui(value.parse().map_err(|_| invalid())?),
            "dev_addr_prefix" => Self::DevAddrPrefix(value.parse()?),
            _ => return Err(invalid()),
        })
    }
}

impl TryFrom<Message> for Metadata {
    type Error = Error;

    fn try_from(message: Message) -> Result<Self> {
        Ok(match message {
            Message::AppId(id) => Self::AppId(id.parse()?),
            Message::GatewayId(id) => Self::GatewayId(id.parse()?),
            Message::AppEui(eui) => {
                Self::AppEui(eui.as_slice().try_into().map_err(|_| Error::invalid("AppEUI", "must be 8 bytes"))?)
            }
            Message::DevAddrPrefix(prefix) => Self::DevAddrPrefix(prefix.as_slice().try_into()?),
        })
    }
}

impl From<Metadata> for Message {
    fn from(metadata: Metadata) -> Self {
        match metadata {
            Metadata::AppId(id) => Self::AppId(id.into()),
            Metadata::GatewayId(id) => Self::GatewayId(id.into()),
            Metadata::AppEui(eui) => Self::AppEui(eui.as_bytes().to_vec()),
            Metadata::DevAddrPrefix(prefix) => Self::DevAddrPrefix(prefix.to_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_survives_a_round_trip() {
        let texts = ["app_id:my-app", "gateway_id:gw-1", "app_eui:70B3D57ED0000001", "dev_addr_prefix:26000000/20"];
        for text in texts {
            let metadata: Metadata = text.parse().unwrap();
            assert_eq!(metadata.to_string(), text);
            assert_eq!(Metadata::try_from(Message::from(metadata.clone())).unwrap(), metadata);
        }
    }
}
