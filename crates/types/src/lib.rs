#![doc = include_str!("../README.md")]

mod base64;
mod bytes;
mod change;
mod claims;
mod credential;
mod event;
mod grant;
mod hex_bytes;
mod id;
mod kind;
mod location;
mod message;
mod network;
mod prefix;
mod random;
mod rate_limit_exceeded;
mod right;
mod scope;
mod service;
mod text;
mod time;

pub use self::base64::decode_base64;
pub use bytes::{AppEui, AppKey, AppNonce, AppSKey, BytesError, DevAddr, DevEui, DevNonce, NetId, NwkSKey};
pub use change::Change;
pub use claims::{Claims, FullName};
pub use credential::{ACCESS_KEY_BYTES_MAX, AccessKey, CREDENTIAL_BYTES_MAX, Credential, CredentialError, Secret};
pub use event::{Activation, DeviceEvent, DownlinkConfig, DownlinkEvent, DownlinkSentEvent, ErrorEvent};
pub use grant::Grant;
pub use hex_bytes::{HexBytes, HexBytesError};
pub use id::{AppId, ClientId, ComponentId, DevId, GatewayId, IdError, UserId, Username, WebhookId};
pub use kind::{Kind, Kinded};
pub use location::{ALTITUDES, LATITUDES, LONGITUDES};
pub use message::{Downlink, GatewayMetadata, Metadata, SentDownlink, Uplink};
pub use network::{
    DeviceIds, DownlinkOutcome, DownlinkReport, NetworkDevice, NetworkDownlink, NetworkEvent, NetworkJoin,
    NetworkRefusal, NetworkUplink,
};
pub use prefix::{DevAddrPrefix, PrefixError};
pub use random::Random;
pub use rate_limit_exceeded::RateLimitExceeded;
pub use right::{ApplicationRight, ComponentRight, GatewayRight, UnknownRight};
pub use scope::{Scope, ScopeError};
#[doc(hidden)]
pub use serde;
pub use service::{ServiceName, UnknownService};
pub use text::is_line;
pub use time::{Clock, InvalidTimestamp, Timestamp};
