#![doc = include_str!("../README.md")]

mod authorization;
mod bytes;
mod change;
mod device;
mod id;
mod kind;
mod message;
mod random;
mod service;
mod settings;
mod text;
mod time;

pub use authorization::{
    ACCESS_KEY_BYTES_MAX, AccessKey, ApplicationRight, CREDENTIAL_BYTES_MAX, Claims, ComponentRight, Credential,
    CredentialError, FullName, GatewayRight, Grant, Scope, ScopeError, Secret, UnknownRight,
};
pub use bytes::{
    AppEui, AppKey, AppNonce, AppSKey, BytesError, DevAddr, DevAddrPrefix, DevEui, DevNonce, NetId, NwkSKey,
    PrefixError,
};
pub use change::Change;
pub use device::{
    ADDRESS_USAGES, ATTRIBUTE_BYTES_MAX, ATTRIBUTES_BUILT_IN, ATTRIBUTES_MAX, BrokenRule, DeviceParts,
    location::{ALTITUDES, LATITUDES, LONGITUDES},
    silence::{InvalidSilentAfter, SILENT_AFTER, SilentAfter},
};
pub use id::{AppId, ClientId, ComponentId, DevId, DevicePath, GatewayId, IdError, UserId, Username, WebhookId};
pub use kind::{Kind, Kinded, RateLimitExceeded};
pub use message::{
    Activation, DeviceEvent, DeviceIds, Downlink, DownlinkConfig, DownlinkEvent, DownlinkOutcome, DownlinkReport,
    DownlinkSentEvent, ErrorEvent, GatewayMetadata, Metadata, NetworkDevice, NetworkDownlink, NetworkEvent,
    NetworkJoin, NetworkRefusal, NetworkUplink, SentDownlink, SilentEvent, Uplink,
};
pub use random::Random;
#[doc(hidden)]
pub use serde;
pub use service::{ServiceName, UnknownService};
pub use text::{HexBytes, HexBytesError, decode_base64, is_line};
pub use time::{Clock, InvalidTimestamp, Timestamp};
