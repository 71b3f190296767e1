#![doc = include_str!("../README.md")]

mod api;
mod bridge;
mod codec;
mod downlink;
mod event;
mod network;
mod offline;
mod settings;
mod shadow;
mod source;
mod uplink;

pub use self::{
    api::application::check_application,
    bridge::ChirpStackBridge,
    event::other::NETWORK_KINDS,
    network::ChirpStackNetwork,
    offline::{OfflineDecoder, OfflineDevice, OfflineUplink},
    settings::{ChirpStackSettings, GrpcSettings},
    shadow::{ChirpStackShadow, GivenCredentials},
};
