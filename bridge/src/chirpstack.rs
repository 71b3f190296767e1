//! The bridge to ChirpStack 4.

mod api;
mod bridge;
mod brokers;
mod cayenne;
mod codec;
mod decoder;
mod directory;
mod downlink;
mod event;
mod forms;
mod incoming;
mod intake;
mod javascript;
mod log_event;
mod network;
mod object;
mod offline;
mod report;
mod routes;
mod settings;
mod shadow;
mod source;
mod stream;
mod topic;
mod uplink;

pub use self::{
    bridge::ChirpStackBridge,
    network::ChirpStackNetwork,
    offline::{OfflineDecoder, OfflineDevice, OfflineUplink},
    settings::{ChirpStackSettings, GrpcSettings},
    shadow::ChirpStackShadow,
};
