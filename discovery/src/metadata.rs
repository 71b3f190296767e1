//! What components serve: applications, gateways, join EUIs and prefixes of device addresses.

use std::{fmt, str::FromStr};

use api::discovery::metadata::Metadata as Message;
use types::{AppEui, AppId, DevAddr, GatewayId, ServiceName};

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
    /// A prefix of device addresses, served by a broker.
    DevAddrPrefix(DevAddrPrefix),
}

/// The device addresses whose first bits are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DevAddrPrefix {
    address: DevAddr,
    /// How many bits are fixed: 0 to 32.
    bits: u8,
}

impl Metadata {
    /// The service whose components serve such things.
    pub(crate) fn service(&self) -> ServiceName {
        match self {
            Self::AppId(_) | Self::AppEui(_) => ServiceName::Handler,
            Self::GatewayId(_) => ServiceName::Router,
            Self::DevAddrPrefix(_) => ServiceName::Broker,
        }
    }
}

/// As in store keys and not-found texts: `app_id:my-app`.
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

impl DevAddrPrefix {
    /// Whether some address has both prefixes.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let shorter = self.bits.min(other.bits);
        number(self.address) & mask(shorter) == number(other.address) & mask(shorter)
    }

    /// A prefix whose address is zero behind the fixed bits, so that each prefix is written in one way.
    fn new(bits: u8, address: DevAddr) -> Result<Self> {
        if bits > 32 || number(address) & !mask(bits) != 0 {
            let rule = "must be a length of at most 32 bits, and an address that is zero behind them";
            return Err(Error::invalid("DevAddrPrefix", rule));
        }
        Ok(Self { address, bits })
    }

    /// One byte of length, four of address.
    fn to_bytes(self) -> Vec<u8> {
        [&[self.bits], &self.address.as_bytes()[..]].concat()
    }
}

impl TryFrom<&[u8]> for DevAddrPrefix {
    type Error = Error;

    fn try_from(bytes: &[u8]) -> Result<Self> {
        match bytes {
            [bits, address @ ..] if address.len() == DevAddr::LENGTH => {
                Self::new(*bits, address.try_into().unwrap_or_default())
            }
            _ => Err(Error::invalid("DevAddrPrefix", "must be 5 bytes: the length of the prefix, then an address")),
        }
    }
}

/// As TTN writes it: `26000000/20`.
impl fmt::Display for DevAddrPrefix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.address, self.bits)
    }
}

impl FromStr for DevAddrPrefix {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = || Error::invalid("DevAddrPrefix", "must look like 26000000/20");
        let (address, bits) = text.split_once('/').ok_or_else(invalid)?;
        Self::new(bits.parse().map_err(|_| invalid())?, address.parse().map_err(|_| invalid())?)
    }
}

fn number(address: DevAddr) -> u32 {
    u32::from_be_bytes(*address.as_bytes())
}

/// The first `bits` of 32.
fn mask(bits: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> DevAddrPrefix {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_written_reads_back() {
        let texts = ["app_id:my-app", "gateway_id:gw-1", "app_eui:70B3D57ED0000001", "dev_addr_prefix:26000000/20"];
        for text in texts {
            let metadata: Metadata = text.parse().unwrap();
            assert_eq!(metadata.to_string(), text);
            assert_eq!(Metadata::try_from(Message::from(metadata.clone())).unwrap(), metadata);
        }
    }

    #[test]
    fn a_prefix_is_a_length_and_an_address_with_zeroes_behind_it() {
        for (bytes, text) in
            [([7, 0x26, 0, 0, 0], "26000000/7"), ([0; 5], "00000000/0"), ([32, 1, 2, 3, 4], "01020304/32")]
        {
            assert_eq!(DevAddrPrefix::try_from(&bytes[..]).unwrap().to_string(), text);
        }
        for bytes in [&[][..], &[7, 0x26, 0, 0], &[33, 0, 0, 0, 0], &[7, 0x27, 0, 0, 0], &[0, 0, 0, 0, 1]] {
            assert!(DevAddrPrefix::try_from(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn prefixes_overlap_when_one_is_inside_the_other() {
        assert!(prefix("26000000/7").overlaps(&prefix("26010000/16")));
        assert!(prefix("26010000/16").overlaps(&prefix("00000000/0")));
        assert!(!prefix("26010000/16").overlaps(&prefix("26020000/16")));
    }
}
