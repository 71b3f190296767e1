#![doc = include_str!("../README.md")]

mod backoff;
pub mod broker;
mod cayenne;
pub mod chirpstack;
mod dedup;
mod delivery;
mod environment;
mod error;
mod hand_over;
mod http;
mod into;
mod lanes;
mod look_up;
mod members;
mod metrics;
mod mqtt;
mod network;
mod observation;
mod outcome;
mod output;
mod prefix;
mod radio;
mod receive;
mod redis;
mod republish;
mod script;
mod secret_file;
mod settings;
mod state_dir;
pub mod things_stack;

pub use self::{
    environment::Environment,
    error::Error,
    http::webhook_router,
    into::StartedNetwork,
    mqtt::MqttSettings,
    network::{Network, Receiver, Route},
    observation::{Observation, Verdict},
    redis::StreamSettings,
    settings::{ApplicationSettings, NetworkSettings, Settings},
};
