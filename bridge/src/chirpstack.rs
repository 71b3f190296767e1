//! The bridge to ChirpStack 4.

mod bridge;
mod cayenne;
mod codec;
mod decoder;
mod directory;
mod downlink;
mod event;
mod log_event;
mod members;
mod output;
mod script;
mod settings;
mod state_dir;
mod topic;
mod uplink;

pub use self::{
    bridge::{Bridge, Environment},
    settings::{ChirpStackSettings, GrpcSettings},
};
