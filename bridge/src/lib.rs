#![doc = include_str!("../README.md")]

pub mod broker;
pub mod chirpstack;
mod codec;
mod environment;
mod error;
mod hand_over;
mod http;
mod message;
mod metrics;
mod publish;
mod receive;
mod settings;
pub mod things_stack;

pub use self::{
    codec::observation::{Observation, Verdict},
    environment::Environment,
    error::Error,
    hand_over::network::{Network, Receiver, Route},
    http::webhook_router,
    settings::{ApplicationSettings, NetworkSettings, Settings, into::StartedNetwork},
};
pub use link::{mqtt::MqttSettings, redis::StreamSettings};
