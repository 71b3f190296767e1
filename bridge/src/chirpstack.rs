//! The bridge to ChirpStack 4.

mod api;
mod bridge;
mod brokers;
mod cayenne;
mod codec;
mod decoder;
mod directory;
mod downlink;
mod environment;
mod event;
mod log_event;
mod members;
mod outcome;
mod output;
mod receive;
mod script;
mod settings;
mod shadow;
mod source;
mod state_dir;
mod stream;
mod topic;
mod uplink;

pub use self::{
    bridge::Bridge,
    environment::Environment,
    settings::{ChirpStackSettings, GrpcSettings},
    shadow::{Observation, Shadow, Verdict},
};
