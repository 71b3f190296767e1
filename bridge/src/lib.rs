#![doc = include_str!("../README.md")]

pub mod broker;
mod cayenne;
pub mod chirpstack;
mod dedup;
mod environment;
mod error;
mod hand_over;
mod http;
mod into;
mod lanes;
mod look_up;
mod members;
mod metrics;
mod network;
mod observation;
mod outcome;
mod output;
mod prefix;
mod radio;
mod receive;
mod republish;
mod script;
mod settings;
mod state_dir;
pub mod things_stack;

pub use self::{
    environment::Environment,
    error::Error,
    http::webhook_router,
    into::StartedNetwork,
    network::{Network, Receiver, Route},
    observation::{Observation, Verdict},
    settings::{ApplicationSettings, NetworkSettings, Settings},
};
pub use link::{mqtt::MqttSettings, redis::StreamSettings};
