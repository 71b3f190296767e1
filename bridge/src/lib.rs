#![doc = include_str!("../README.md")]

pub mod chirpstack;
mod dedup;
mod error;
mod lanes;
mod metrics;
mod mqtt;
mod settings;

pub use self::{error::Error, mqtt::MqttSettings, settings::Settings};
