#![doc = include_str!("../README.md")]

mod backoff;
pub mod chirpstack;
mod dedup;
mod delivery;
mod error;
mod lanes;
mod metrics;
mod mqtt;
mod redis;
mod settings;

pub use self::{error::Error, mqtt::MqttSettings, redis::StreamSettings, settings::Settings};
